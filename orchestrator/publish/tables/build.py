"""Builds a table of a sweep: its own numbers, those of the published table that it names, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, get_args

from orchestrator.publish.aggregate import CandidateOutcome, Place, by_cell, direction, runs_of, selection, summaries_of
from orchestrator.publish.labels import Names, metric_better, metric_over_queries
from orchestrator.publish.papers import Number, PublishedTable, held_labels
from orchestrator.publish.tables import cells, layout, other_rows
from orchestrator.publish.tables.caption import Ages, TableFacts, ages, caption, legend, notes
from orchestrator.publish.tables.cells import (
    Beside,
    Centers,
    Cover,
    EntryWriter,
    compared,
    counted,
    doubted,
    embolden,
    mixed,
    spanned,
)
from orchestrator.publish.tables.evidence import QueryEvidence
from orchestrator.publish.tables.layout import (
    Baselines,
    Headings,
    Placement,
    Point,
    column_titles,
    grouped,
    metric_form,
    panels,
    parse,
    place,
)
from orchestrator.publish.tables.other_rows import imported, quoted
from orchestrator.publish.tables.reproduction import MEANING, Reproduction, Word, compare
from orchestrator.publish.tables.table_data import (
    Column,
    LegendEntry,
    Numbers,
    Panel,
    Quotation,
    Selected,
    Table,
    TableCell,
    TableRow,
)
from orchestrator.spec.axes import Unit
from orchestrator.spec.layouts import MetricColumn, TableSpec
from orchestrator.views.errors import NotFoundError
from orchestrator.views.runs import Cell, CellSummary, Labels, SweepOutcomes, TrialOutcome
from orchestrator.views.tables import DECIMALS, decimals_of, printed
from workers.catalog import Catalog
from workers.contract import BEST_TEST, Select

BuiltNumbers = Literal["own", "published"]


@dataclass(frozen=True)
class _Build:
    """What every step of building one table reads."""

    outcomes: SweepOutcomes
    layout: TableSpec
    names: Names
    select: Select
    placement: Placement
    candidates: Mapping[int, Sequence[CandidateOutcome]]  # by cell
    summaries: Mapping[int, CellSummary]
    published: PublishedTable | None  # where its numbers come from, if not from the sweep
    tested: Mapping[int, CellSummary]  # by cell, where the layout also shows what is selected on test

    def chosen(self, column: Column, cell: int) -> CellSummary:
        """A cell with the candidate that a column shows."""
        return self.tested[cell] if column.selection == "test" else self.summaries[cell]

    @cached_property
    def headings(self) -> Headings:
        return Headings(self.placement, self.names, self.outcomes.spec, self.summaries)

    @cached_property
    def writer(self) -> EntryWriter:
        center = self.layout.center
        centers = None if center == "mean" else Centers(center, self.runs, self.names.parts)
        cover = None
        if self.layout.covers_queries and self.published is None:
            cover = Cover(self.layout.covers, QueryEvidence(self.outcomes.queries), self.runs)
        return EntryWriter.of(self.layout, self.outcomes.state, centers, cover)

    @cached_property
    def runs(self) -> Mapping[Place, Sequence[TrialOutcome]]:
        """The trials of the candidates that the table shows."""
        shown = (*self.summaries.values(), *self.tested.values())
        return runs_of(self.outcomes, {(one.cell, one.candidate) for one in shown if one.candidate is not None})

    @cached_property
    def block(self) -> frozenset[str] | None:
        """The axes that span a block; none: nothing is bold."""
        given, rows = self.layout.bold, self.placement.row_axes
        if given is not None:
            return None if given == "none" else frozenset(given)
        last = max((at for at, axis in enumerate(rows) if self.names.heads(axis)), default=0)
        return frozenset((*rows[:last], *self.placement.column_axes))

    def decimals(self, key: str, unit: Unit, chosen: Selected | None) -> int:
        """How many decimals a metric has in the whole table, where the layout leaves it open."""
        if unit == "percent" or self.published is not None:
            return DECIMALS
        summaries = self.tested if chosen == "test" else self.summaries
        known = [one.metrics[key] for one in summaries.values() if key in one.metrics]
        deviations = (spread for one in known if (spread := self.writer.spread_of(one)) is not None)
        return decimals_of((one.mean for one in known), deviations)

    @cached_property
    def baselines(self) -> dict[tuple[tuple[str, str], ...], Baselines]:
        """By the labels of a difference: the cells that it is taken from."""
        wanted = [one.delta for one in self.layout.metric_columns if one.delta is not None]
        wanted += [self.layout.against] if self.layout.against else []
        return {tuple(labels.items()): Baselines(self.outcomes.cells, labels) for labels in wanted}

    @cached_property
    def by_index(self) -> dict[int, Cell]:
        return {cell.index: cell for cell in self.outcomes.cells}

    def beside(self, column: Column, cell: int) -> Beside | None:
        """A cell and its baseline as a column shows them, where both have finished; none where it has none."""
        other = self.compared(self.by_index[cell], self.layout.against or {}, column)
        own = self.chosen(column, cell)
        if other is None or other.cell == cell or not own.status == other.status == "complete":
            return None
        return own, other

    def compared(self, cell: Cell, wanted: Labels, column: Column) -> CellSummary | None:
        """What a cell is compared with."""
        found = self.baselines[tuple(wanted.items())].of(cell)
        return None if found is None else self.chosen(column, found.index)


def build_own(
    outcomes: SweepOutcomes,
    name: str,
    catalog: Catalog,
    *,
    show_tuned: bool | None = None,
    numbers: BuiltNumbers = "own",
    doubts: bool = False,
) -> Table:
    """The table `name` of the sweep's spec; `show_tuned` overrides the spec's. NotFoundError when there is none.

    With `numbers` published it holds what is printed in the table that the layout names, and nothing of the sweep's
    own; ConflictError where it names none. With `doubts` a bold number says where its lead may be noise.
    """
    layout = parse(outcomes.spec, name)
    if show_tuned is not None:
        layout = layout.model_copy(update={"show_tuned": show_tuned})
    if numbers == "published":  # what is printed was selected once
        alone = {"selections": [], "flattery": False, "against": None, "center": "mean"}
        layout = layout.model_copy(update=alone)
    it = _start(outcomes, layout, catalog, other_rows.source(layout, name) if numbers == "published" else None)
    laid_out = [_panel(it, points) for points in panels(it.placement, layout)]
    built = tuple([panel for panel in laid_out if panel.columns] or laid_out)
    if it.block is not None:
        built = embolden(built, it.block, it.chosen, it.runs if doubts else None)
    built = counted(built, layout.counts)
    if it.published is None:
        built = mixed(built, it.chosen, it.runs)
    if layout.against:
        built = compared(built, it.beside, it.runs, layout.test)
    aged = Ages() if it.published else ages(outcomes, [it.select.key, *_keys(built)], catalog)
    facts = TableFacts(
        outcomes, layout, it.names, it.select, it.summaries, built, it.block, it.candidates, it.published
    )
    facts = replace(facts, aged=aged.said(facts.cell_name))
    return Table(
        name=name,
        sweep=outcomes.sweep,
        sweep_name=outcomes.name,
        state=outcomes.state,
        stub=it.headings.stub(),
        panels=built,
        caption=caption(facts, it.placement),
        notes=notes(facts),
        legend=(*legend(facts), *([LegendEntry(cells.SIGN, cells.MEANING)] if doubted(built) else [])),
        summaries=it.summaries,
        std=layout.shown_spread != "none",
        center=layout.center,
        spread=layout.shown_spread,
        covers=layout.covers,
        numbers=numbers,
        tested=it.tested,
        ages=aged.cells,
        aged=facts.aged,
    )


def _keys(built: Sequence[Panel]) -> list[str]:
    return [column.key for panel in built for column in panel.columns if column.key]


def _start(outcomes: SweepOutcomes, layout: TableSpec, catalog: Catalog, published: PublishedTable | None) -> _Build:
    select = selection(outcomes.spec)
    candidates: Mapping[int, Sequence[CandidateOutcome]] = {}
    tested: list[CellSummary] = []
    if published is None:
        better = direction(select.metric, catalog)
        candidates = by_cell(outcomes)
        shown = summaries_of(candidates, select.key, better)
        if "test" in layout.selections:
            tested = summaries_of(candidates, select.beside_key, better)
    else:
        shown = other_rows.summaries(outcomes, layout, published, catalog)
    names = Names(catalog, layout.labels, layout.titles)
    chosen, by_test = ({one.cell: one for one in those} for those in (shown, tested))
    return _Build(outcomes, layout, names, select, place(outcomes, layout), candidates, chosen, published, by_test)


def _panel(it: _Build, points: Sequence[Point]) -> Panel:
    columns = [(point, column) for point in points for column in _columns(it, point)]
    under, every = [point for point, _ in columns], [column for _, column in columns]
    wanted = list(dict.fromkeys(under))
    rows = [row for row in it.placement.rows if any((row, point) in it.placement.cells for point in wanted)]
    beside = it.headings.beside(rows, wanted)
    levels = [*it.headings.over(under, rows)]
    if it.layout.groups == "several" and len(wanted) == len(it.placement.columns):  # the only panel
        levels = [level for level in levels if len(level) > 1]
    levels += [layout.level(under, every)] if it.layout.selections else []
    levels += [grouped(under, every, lambda column: column.over)] if any(column.over for column in every) else []
    return Panel(
        groups=tuple(levels),
        columns=tuple(column for _, column in columns),
        rows=tuple(
            TableRow(
                headings=one.headings,
                texts=one.texts,
                labels=dict(zip(it.placement.row_axes, row, strict=True)),
                rule=one.rule,
                cells=spanned([_cell(it, row, point, column) for point, column in columns]),
            )
            for row, one in zip(rows, beside, strict=True)
        ),
    )


def _columns(it: _Build, point: Point) -> list[Column]:
    """The columns under one point of the column axes: what was tuned, then the metrics, by each selection in turn."""
    labels = dict(zip(it.placement.column_axes, point, strict=True))
    tuned = _tuned_axes(it, point) if it.layout.show_tuned else []
    metrics = it.layout.metrics_at(labels)
    titled = [*zip(metrics, column_titles(metrics, it.names.parts, arrows=it.layout.arrows), strict=True)]
    columns: list[Column] = []
    for chosen in it.layout.selections or (None,):
        columns += [Column("tuned", axis, it.names.title(axis), labels, selection=chosen) for axis in tuned]
        columns += [_metric_column(it, wanted, title, labels, chosen) for wanted, title in titled]
    if it.layout.flattery:
        flattered = [one for one in columns if one.kind == "metric" and one.selection == "test" and one.delta is None]
        columns += [replace(one, kind="flattery", better="none", signed=True, selection=None) for one in flattered]
    return columns


def _metric_column(it: _Build, wanted: MetricColumn, title: str, labels: Labels, chosen: Selected | None) -> Column:
    parts = it.names.parts
    # What is best shows in the metric itself, not in a difference of it.
    better = metric_better(wanted.metric, parts) if wanted.delta is None else "none"
    key = wanted.key(BEST_TEST if chosen == "test" else it.select.checkpoint)
    unit = metric_form(wanted, it.layout, parts)
    decimals = it.layout.decimals if wanted.decimals is None else wanted.decimals
    return Column(
        kind="metric",
        name=wanted.name,
        title=title,
        labels=labels,
        key=key,
        unit=unit,
        decimals=it.decimals(key, unit, chosen) if decimals is None else decimals,
        better=better,
        signed=wanted.signed,
        delta=wanted.delta,
        selection=chosen,
        over=wanted.over or "",
        over_queries=metric_over_queries(wanted.metric, parts),
    )


def _tuned_axes(it: _Build, point: Point) -> list[str]:
    here = {cell.index for (_, column), cell in it.placement.cells.items() if column == point}
    if it.published is not None:
        return list(dict.fromkeys(axis for index in here for axis in it.summaries[index].labels))
    axes = (axis for one in it.outcomes.candidates if one.cell in here for axis in one.labels)
    return list(dict.fromkeys(axes))


def _cell(it: _Build, row: Point, under: Point, column: Column) -> TableCell:
    cell = it.placement.cells.get((row, under))
    if cell is None:
        return it.writer.absent("not in this sweep")
    summary = it.chosen(column, cell.index)
    if column.kind == "flattery":
        key = layout.honest_key(column, it.select)
        return it.writer.flattery(summary, it.tested[cell.index], key, column)
    if column.kind == "tuned":
        return it.writer.tuned(summary, column.name)
    if column.delta is None:
        return it.writer.value(summary, column)
    if it.published is not None:
        return it.writer.difference_told(summary, column)
    return it.writer.difference(summary, it.compared(cell, column.delta, column), column)


_SAYS: Final[Mapping[str, str]] = {
    "difference": "Shown is own mean minus the number printed in {id}, where both are there.",
    "both": "The columns headed paper hold what is printed in {id}.",
    "verdict": "Verdicts compare with the numbers printed in {id}; the tolerance is half the 95 % Student-t interval "
    "of the own mean, and half a printed digit.",
}

_QUOTES: Final = ("own", "both")
"""The views in which rows stand that are quoted or imported: the others are about own numbers."""

_FORM: Final[Mapping[str, Mapping[str, Any]]] = {
    "difference": {"bold": "none", "std": False, "against": None, "center": "mean"},  # a difference has none of these
    # A long word that stood across a cell's metrics would stand in each of their columns.
    "both": {"diverged": "diverged"},
    "verdict": {"diverged": "diverged"},
}
"""What a table's layout has otherwise in a view."""


def build(
    outcomes: SweepOutcomes,
    name: str,
    catalog: Catalog,
    *,
    show_tuned: bool | None = None,
    numbers: Numbers = "own",
    doubts: bool = False,
) -> Table:
    """The table `name` of the sweep's spec, showing those numbers.

    Whatever it shows, its cells hold what is printed there, where the table names a published one. NotFoundError where
    there is no such table, ConflictError where it names no published one and `numbers` needs it. With `doubts` a bold
    number says where its lead may be noise.
    """
    if numbers == "published":
        built = build_own(outcomes, name, catalog, show_tuned=show_tuned, numbers="published")
        layout = parse(outcomes.spec, name)
        return quoted(built, layout, other_rows.source(layout, name))
    if numbers in _FORM:
        outcomes = replace(outcomes, spec=_formed(outcomes.spec, name, _FORM[numbers]))
    own = build_own(outcomes, name, catalog, show_tuned=show_tuned, doubts=doubts)
    layout = parse(outcomes.spec, name)
    own = imported(own, layout, catalog) if numbers in _QUOTES else own
    paper = _paper(layout, name, numbers)
    if paper is None:
        return own
    held = {cell.index: held_labels(outcomes.spec, cell.labels, paper, catalog) for cell in outcomes.cells}
    quoting = _Quoting(paper, held, own.summaries)
    compared = replace(own, published=paper, panels=tuple(quoting.panel(panel) for panel in own.panels))
    if numbers in _QUOTES:
        compared = quoted(compared, layout, paper)
    return compared if numbers == "own" else _viewed(compared, paper, layout, numbers)


def _formed(spec: Mapping[str, Any], name: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with some of a table's keys changed."""
    tables = spec.get("tables") or {}
    return {**spec, "tables": {**tables, **({name: {**tables[name], **form}} if name in tables else {})}}


def _paper(layout: TableSpec, name: str, numbers: Numbers) -> PublishedTable | None:
    """The published table that a layout names; own numbers do without one, or (in an old sweep) one that is gone."""
    if numbers != "own":
        return other_rows.source(layout, name)
    try:
        return other_rows.source(layout, name) if layout.published is not None else None
    except NotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class _Quoting:
    """Puts published numbers, and how they were reproduced, into the cells of a table of own numbers."""

    paper: PublishedTable
    held: Mapping[int, Labels]  # by cell
    summaries: Mapping[int, CellSummary]

    def panel(self, panel: Panel) -> Panel:
        """A panel whose metric cells know their published numbers."""
        rows = (
            replace(row, cells=tuple(self._cell(*pair) for pair in zip(panel.columns, row.cells, strict=True)))
            for row in panel.rows
        )
        return replace(panel, rows=tuple(rows))

    def _cell(self, column: Column, cell: TableCell) -> TableCell:
        if column.kind != "metric" or cell.cell is None:
            return cell
        number = other_rows.number(self.paper, self.held[cell.cell], column.name)
        if number is None:
            return cell
        found = compare(cell.statistic, self.summaries[cell.cell], number)
        words = "; ".join(one for one in (cell.note, _told(self.paper.id, number, found, column)) if one)
        return replace(cell, quotation=Quotation(number, found), note=words)


def _told(paper: str, number: Number, found: Reproduction, column: Column) -> str:
    tuned = ", ".join(f"{axis} = {label}" for axis, label in number.tuned.items())
    said = [f"{paper} prints {number.printed}" + (f" ({tuned})" if tuned else "")]
    said += [f"from {number.source}"] if number.source else []
    if found.difference is not None:
        said.append(f"difference {printed(found.difference, column.unit, column.decimals, signed=True)}")
    if found.tolerance is not None:
        said.append(f"tolerance {printed(found.tolerance, column.unit, column.decimals)}")
    return ", ".join((*said, *([found.word] if found.word else [])))


def _viewed(own: Table, paper: PublishedTable, layout: TableSpec, numbers: Numbers) -> Table:
    cells = (cell for panel in own.panels for row in panel.rows for cell in row.cells)
    words = {cell.quotation.reproduction.word for cell in cells if cell.quotation}
    known = {one.symbol for one in own.legend}
    meant = [LegendEntry(word, MEANING[word]) for word in get_args(Word) if word in words - known]
    return replace(
        own,
        panels=tuple(other_rows.VIEWS[numbers](panel, layout.missing) for panel in own.panels),
        caption=f"{own.caption} {_SAYS[numbers].format(id=paper.id)}",
        notes=(*own.notes, *([f"{paper.id}: {paper.note}"] if paper.note else [])),
        legend=(*own.legend, *(meant if numbers == "verdict" else [])),
        numbers=numbers,
    )
