"""First pass of a table, select: from the results of trials to one summary for each cell and selection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestrator.publish.aggregate import (
    Ages,
    CandidateResult,
    Place,
    ages,
    by_cell,
    direction,
    mixture,
    optimism,
    runs_of,
    selection,
    spread_of,
    summaries_of,
)
from orchestrator.publish.labels import MetricFacts, Names, metric_facts
from orchestrator.publish.papers import PublishedTable, completed_labels, load
from orchestrator.publish.tables.table_data import ARROWS, Column, Numbers, Selected
from orchestrator.spec.layouts import DELTA, Covers, MetricColumn, TableSpec, Unit
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import CellOptimism, PublishedNumber
from orchestrator.views.runs import CellSummary, Labels, Statistic, SweepResults, TrialResult
from orchestrator.views.states import TrialState
from orchestrator.views.tables import DECIMALS, decimals_of
from workers.catalog import Catalog, unknown
from workers.contract import BEST_TEST, Select

UNKNOWN: Final = 0
"""The number of repeats of a printed mean: papers seldom say."""
_BY_SEC: Final = "_sec"
"""The end of the name of a metric that follows the rule of SEC's code."""

_FORMS: Final[Mapping[Numbers, Mapping[str, Any]]] = {
    "own": {},
    # What is printed was selected once.
    "published": {"selections": [], "selection_gap": False, "against": None, "center": "mean"},
    # A difference has none of these.
    "difference": {"bold": "none", "std": False, "against": None, "center": "mean"},
    # A long word that stood across a cell's metrics would stand in each of their columns.
    "both": {"diverged": "diverged"},
    "verdict": {"diverged": "diverged"},
}
"""What is different in the layout of a table that shows these numbers."""


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A metric of the layout as a table column, before its place is known."""

    wanted: MetricColumn
    column: Column  # without the labels of its place
    arrow: str  # which way is better, behind its title
    open: bool  # whether its decimals depend on the numbers in it


@dataclass(frozen=True, slots=True)
class Selection:
    """A summary for each cell by each selection rule, with the parts of sweep and layout that the later passes read."""

    name: str
    results: SweepResults
    numbers: Numbers
    layout: TableSpec
    names: Names
    rule: Select
    metric: MetricFacts  # of the metric that is selected by
    covers: Covers  # what the spread covers
    printed: PublishedTable | None  # the printed table whose numbers stand in place of the sweep's
    paper: PublishedTable | None  # the printed table that the sweep's numbers are compared with
    candidates: Mapping[int, Sequence[CandidateResult]]  # by cell; empty for a table of printed numbers
    summaries: Mapping[int, CellSummary]  # by cell
    tested: Mapping[int, CellSummary]  # by cell, where the layout also shows what is selected on test
    shown: Mapping[Selected | None, Mapping[int, CellSummary]]  # the same, by the selection of a column
    runs: Mapping[Place, Sequence[TrialResult]]  # the trials of the selected candidates
    mixed: Mapping[Place, str]  # what differs between them: data, code, versions of parts
    ages: Ages
    optimism: Sequence[CellOptimism]  # of each cell, where the layout asks for it
    columns: Sequence[DescribedColumn]  # for each selection in turn, the metrics of the layout


def select(
    results: SweepResults, name: str, catalog: Catalog, *, show_tuned: bool | None = None, numbers: Numbers = "own"
) -> Selection:
    """Reads the layout of the table `name` and selects the candidate that each cell shows; raises like `build`."""
    layout = layout_of(results.spec, name)
    if form := _FORMS[numbers] if show_tuned is None else {**_FORMS[numbers], "show_tuned": show_tuned}:
        layout = layout.model_copy(update=form)
    wanted, spread = layout.metric_columns, layout.shown_spread
    covers: Covers = layout.covers if layout.covers_queries and numbers != "published" else "seeds"
    rule = selection(results.spec)
    checkpoint, key = rule.checkpoint, rule.key
    metric = metric_facts(rule.metric, catalog)
    facts = [metric_facts(one.metric, catalog) for one in wanted]
    paper = _paper(layout, name, numbers, catalog)
    printed = paper if numbers == "published" else None
    described = [
        _described(*pair, layout, chosen, BEST_TEST if chosen == "test" else checkpoint)
        for chosen in layout.selections or (None,)
        for pair in zip(wanted, facts, strict=True)
    ]
    # The candidate that each cell shows, or the numbers that are printed for it.
    candidates: Mapping[int, Sequence[CandidateResult]] = {}
    tested: list[CellSummary] = []
    optimistic: Sequence[CellOptimism] = ()
    runs: Mapping[Place, Sequence[TrialResult]] = {}
    if printed is None:
        better = direction(rule.metric, catalog)
        candidates = by_cell(results)
        summaries = summaries_of(candidates, key, better)
        optimistic = optimism(results, better).cells if layout.optimism else ()
        if "test" in layout.selections:
            tested = summaries_of(candidates, rule.beside_key, better)
        selected = {(one.cell, one.candidate) for one in (*summaries, *tested) if one.candidate is not None}
        runs = runs_of(results, selected)
    else:
        summaries = _printed_summaries(results, layout, printed, catalog)
    by_rule, by_test = ({one.cell: one for one in those} for those in (summaries, tested))
    shown: dict[Selected | None, dict[int, CellSummary]] = {None: by_rule, "validation": by_rule, "test": by_test}
    # Numbers that are no percents decide on their decimals together.
    columns = []
    for one in described:
        column, known = one.column, shown[one.column.selection].values()
        if one.open and printed is None:
            statistics = [each.metrics[column.key] for each in known if column.key in each.metrics]
            spreads = [found for each in statistics if (found := spread_of(each, spread)) is not None]
            column = replace(column, decimals=decimals_of((each.mean for each in statistics), spreads))
        columns.append(replace(one, column=column))
    metrics = [metric.name, *(one.name for one in facts)]
    finished = {place: [one for one in its if one.state is TrialState.FINISHED] for place, its in runs.items()}
    return Selection(
        name=name,
        results=results,
        numbers=numbers,
        layout=layout,
        names=Names(catalog, layout.labels, layout.titles),
        rule=rule,
        metric=metric,
        covers=covers,
        printed=printed,
        paper=None if printed else paper,
        candidates=candidates,
        summaries=by_rule,
        tested=by_test,
        shown=shown,
        runs=runs,
        mixed={place: "; ".join(mixture(its)) for place, its in finished.items()},
        ages=Ages() if printed else ages(results, metrics, catalog),
        optimism=optimistic,
        columns=columns,
    )


def layout_of(spec: Mapping[str, Any], name: str) -> TableSpec:
    """One of the tables of a stored spec, of any release; the NotFoundError for an unknown name lists the tables."""
    tables = spec.get("tables") or {}
    if name not in tables:
        raise NotFoundError(unknown("table", name, tables))
    return TableSpec.model_validate(tables[name], extra="ignore")  # keys of another release


def headline(spec: Mapping[str, Any], catalog: Catalog) -> tuple[Column, Sequence[str]] | None:
    """The first column of a sweep's first table whose metric has a better direction, and the axes of its columns.

    `None` means that the table has no such column, or the sweep no table.
    """
    for name in list(spec.get("tables") or {})[:1]:
        layout = layout_of(spec, name)
        for wanted in layout.metric_columns:
            column = _described(
                wanted, metric_facts(wanted.metric, catalog), layout, None, selection(spec).checkpoint
            ).column
            if column.plain and column.better != "none":
                return column, layout.columns
    return None


def _paper(layout: TableSpec, name: str, numbers: Numbers, catalog: Catalog) -> PublishedTable | None:
    """The published table that a layout names; own numbers do without it, also where an old sweep's is gone."""
    if layout.published is None:
        if numbers == "own":
            return None
        raise ConflictError(f"table '{name}' names no published table to compare with; add `published: <name>` to it")
    try:
        return load(layout.published, catalog.published)
    except NotFoundError:
        if numbers == "own":
            return None
        raise


def _described(
    wanted: MetricColumn, metric: MetricFacts, layout: TableSpec, chosen: Selected | None, checkpoint: str
) -> DescribedColumn:
    """A metric of the layout by one selection, before its decimals are known."""
    unit = metric_form(wanted, metric, layout)
    decimals = layout.decimals if wanted.decimals is None else wanted.decimals
    title = wanted.label
    if title is None:
        title = f"{metric.title} ↓" if metric.better == "lower" else metric.title
        title += f" ({wanted.test_set})" if wanted.test_set else ""
        title += " (separated)" if wanted.separated else ""
        title = title if wanted.delta is None else f"Δ{title}"
    column = Column(
        kind="metric",
        name=wanted.name,
        title=title,
        labels={},
        key=wanted.key(checkpoint),
        unit=unit,
        decimals=DECIMALS if decimals is None else decimals,
        # The best is shown in the metric itself, not in a difference of it.
        better=metric.better if wanted.delta is None else "none",
        signed=wanted.signed,
        delta=wanted.delta,
        selection=chosen,
        over=wanted.over or "",
        over_queries=metric.over_queries,
        rule=metric.rule,
    )
    bare = layout.arrows and title and wanted.delta is None and not any(one.strip() in title for one in ARROWS.values())
    arrow = ARROWS.get(metric.better, "") if bare else ""
    return DescribedColumn(wanted, column, arrow, decimals is None and unit != "percent")


def metric_form(wanted: MetricColumn, metric: MetricFacts, layout: TableSpec) -> Unit:
    """The unit in which a column prints a metric: its own, `number` for a non-share, or else the layout's."""
    if wanted.unit is not None:
        return wanted.unit
    return "number" if metric.unit == "number" else layout.unit


def printed_number(table: PublishedTable, labels: Labels, metric: str) -> PublishedNumber | None:
    """The printed number for a cell; a variant such as `nmi@geometric` or `nmi_sec` stands for its base metric.

    Papers that test on several sets print each as a data set: `lfw:accuracy` is the accuracy on LFW.
    """
    place, colon, tested = metric.partition(":")
    if colon and f"{place}:" not in {DELTA, "separated:"}:
        return printed_number(table, {**labels, "dataset": place}, tested)
    found = table.find(labels, metric)
    stem, at, cut = metric.partition("@")
    if found is None and stem.endswith(_BY_SEC):
        return table.find(labels, f"{stem.removesuffix(_BY_SEC)}{at}{cut}")
    return table.find(labels, stem) if found is None and cut.isalpha() and len(cut) > 1 else found


def _printed_summaries(
    results: SweepResults, layout: TableSpec, paper: PublishedTable, catalog: Catalog
) -> list[CellSummary]:
    """What the printed table says of each cell of the sweep; a cell that it does not have is empty."""
    checkpoint = selection(results.spec).checkpoint
    found = []
    for cell in results.cells:
        labels = completed_labels(results.spec, cell.labels, paper, catalog)
        numbers = {
            # A difference goes by its own name.
            column.name if column.delta else column.key(checkpoint): number
            for column in layout.metric_columns
            if (number := printed_number(paper, labels, column.name)) is not None
        }
        values = {key: Statistic(one.value, one.std, UNKNOWN) for key, one in numbers.items() if one.value is not None}
        summary = CellSummary(
            cell=cell.index,
            status="diverged" if numbers and not values else "complete",
            candidate=0 if values else None,
            labels=next((one.tuned for one in numbers.values()), {}),
            selection_key="",
            score=None,
            metrics=values,
            candidates=UNKNOWN,
        )
        found.append(summary)
    return found
