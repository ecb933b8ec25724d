"""One cell of a sweep: which candidates competed in it, which was selected, and which numbers of tables it fills."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from orchestrator.publish.aggregate import (
    Baselines,
    CandidateResult,
    Means,
    by_cell,
    direction,
    mixture,
    selection,
    summary_of,
)
from orchestrator.publish.labels import metric_facts
from orchestrator.publish.tables import build
from orchestrator.publish.tables.select import layout_of, metric_form
from orchestrator.publish.tables.table_data import Column, Table, TableCell, places
from orchestrator.spec.layouts import TableSpec
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.runs import Cell, Labels, SweepResults, TrialProvenance, TrialResult
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import Links
from orchestrator.views.tables import CellCandidate, CellNumber, CellTrial, CellView, ComparedCell
from workers.catalog import Catalog, changes

Aging = Callable[[str], Sequence[str]]
"""From a stamp, which a thousand trials may share, to what has other numbers today."""


def is_independent(spec: Mapping[str, Any], cell: Cell, catalog: Catalog) -> bool:
    """Whether the tables' numbers of a cell depend on no other cell of its sweep."""
    whole = set(spec.get("compare") or {}) <= set(cell.labels)
    return whole and not _subtracted(spec) and not _scaled(spec, catalog)


def needed(spec: Mapping[str, Any], cells: Sequence[Cell], cell: Cell, catalog: Catalog) -> list[int]:
    """The cells of a sweep on which the tables' numbers of one cell depend.

    The cell itself, the cells that are subtracted from it, and a cell for each axis that it lacks, since an axis that
    varies is placed differently. All cells where the numbers of a column decide together on their decimals.
    """
    if _scaled(spec, catalog):
        return [one.index for one in cells]
    found = [cell, *(Baselines(cells, labels).of(cell) for labels in _subtracted(spec))]
    for axis in dict.fromkeys(axis for one in cells for axis in one.labels if axis not in cell.labels):
        found.append(next(one for one in cells if axis in one.labels))
    return sorted({one.index for one in found if one is not None})


def _subtracted(spec: Mapping[str, Any]) -> list[Labels]:
    return [column.delta for table in _layouts(spec) for column in table.metric_columns if column.delta is not None]


def _scaled(spec: Mapping[str, Any], catalog: Catalog) -> bool:
    """Whether a table leaves open the decimals of a metric that is not in percent."""
    return any(
        table.decimals is None
        and column.decimals is None
        and metric_form(column, metric_facts(column.metric, catalog), table) != "percent"
        for table in _layouts(spec)
        for column in table.metric_columns
    )


def _layouts(spec: Mapping[str, Any]) -> list[TableSpec]:
    return [layout_of(spec, name) for name in spec.get("tables") or {}]


def trace(results: SweepResults, cell: int, evidence: Iterable[TrialProvenance], catalog: Catalog) -> CellView:
    """Everything behind the numbers of a cell, for its page without links; `results` need only hold the `needed` cells.

    NotFoundError where the sweep has no such cell.
    """
    traced = next((one for one in results.cells if one.index == cell), None)
    if traced is None:
        raise NotFoundError(f"sweep {results.sweep} has no cell {cell}; its cells are 0 to {len(results.cells) - 1}")
    select = selection(results.spec)
    competing = by_cell(results)[cell]
    summary = summary_of(cell, competing, select.key, direction(select.metric, catalog))
    by_candidate: dict[int, list[TrialProvenance]] = {}
    for trial in evidence:
        by_candidate.setdefault(trial.result.candidate, []).append(trial)
    aging = cache(lambda stamp: [str(change) for change in changes(stamp, catalog)])
    listed = [
        _candidate(one, by_candidate.get(one.index, []), select.key, summary.candidate, aging) for one in competing
    ]
    runs = [one for one in results.trials_of(cell) if one.candidate == summary.candidate]
    return CellView(
        sweep=results.sweep,
        sweep_name=results.name,
        index=cell,
        labels=dict(traced.labels),
        status=summary.status,
        selection_key=select.key,
        numbers=list(_numbers(results, cell, catalog)),
        candidates=sorted(listed, key=lambda one: not one.selected),
        mixed=list(mixture(one for one in runs if one.state is TrialState.FINISHED)),
    )


def compared(results: SweepResults, index: int, catalog: Catalog) -> tuple[ComparedCell, TrialResult | None]:
    """A cell of a comparison without its recipe, and a trial that has the recipe; NotFoundError for an unknown cell."""
    cell = next((one for one in results.cells if one.index == index), None)
    if cell is None:
        raise NotFoundError(f"sweep {results.sweep} has no cell {index}; its cells are 0 to {len(results.cells) - 1}")
    select, candidates = selection(results.spec), by_cell(results)[index]
    summary = summary_of(index, candidates, select.key, direction(select.metric, catalog))
    chosen = candidates[0].index if len(candidates) == 1 else summary.candidate
    trials = [one for one in results.trials_of(index) if chosen is None or one.candidate == chosen]
    finished = [one for one in trials if one.state is TrialState.FINISHED and not one.diverged]
    view = ComparedCell(
        sweep=results.sweep, sweep_name=results.name, index=index, labels=dict(cell.labels), status=summary.status,
        selection_key=select.key, candidates=len(candidates),
        selected=next((dict(one.labels) for one in candidates if one.index == chosen), None),
        trials=dict(Counter("diverged" if one.diverged else one.state.value for one in trials)), recipe={},
        metrics=dict(summary.metrics or (Means(finished) if finished and chosen is not None else {})),
    )  # fmt: skip
    return view, trials[0] if trials and chosen is not None else None


def linked(view: CellView, links: Links, experiment: str | None, runs: Mapping[int, str], own: str | None) -> CellView:
    """Adds MLflow links to the view of a cell: `runs` are the MLflow runs by trial, `own` is the cell's own run."""

    def page(run: str | None) -> str | None:
        return links.to(experiment, run) if run else None

    candidates = [
        one.model_copy(
            update={"trials": [t.model_copy(update={"mlflow_url": page(runs.get(t.trial))}) for t in one.trials]}
        )
        for one in view.candidates
    ]
    return view.model_copy(update={"candidates": candidates, "mlflow_url": page(own)})


def _candidate(
    one: CandidateResult, evidence: Iterable[TrialProvenance], key: str, selected: int | None, aging: Aging
) -> CellCandidate:
    score = one.scores.get(key)
    return CellCandidate(
        index=one.index,
        labels=dict(one.labels),
        selected=one.index == selected,
        status=one.status,
        score=score.mean if score else None,
        std=score.std if score else None,
        n=score.n if score else 0,
        trials=[_trial(trial, aging) for trial in evidence],
    )


def _trial(one: TrialProvenance, aging: Aging) -> CellTrial:
    result = one.result
    return CellTrial(
        trial=result.trial,
        uid=one.uid,
        repeat=result.repeat,
        labels=dict(result.repeat_labels),
        state=result.state,
        diverged=result.diverged,
        reused=result.reused,
        score=one.score,
        training=one.training,
        fingerprint=one.fingerprint,
        dataset=one.dataset,
        data_hash=one.data_hash,
        git_commit=one.commit,
        versions=one.versions,
        outdated=list(aging(result.stamp)),
        device=one.device,
        host=str(one.provenance["host"]) if one.provenance.get("host") else None,
        seconds=one.seconds,
        error=one.error,
        reason=one.reason,
        url=f"/v1/trials/{result.trial}",
        mlflow_url=None,
    )


def _numbers(results: SweepResults, cell: int, catalog: Catalog) -> Iterator[CellNumber]:
    """What the cell fills in each table of the spec; a table that cannot be made is passed over."""
    for name in results.spec.get("tables") or {}:
        try:
            table = build.build(results, name, catalog)
        except (ConflictError, NotFoundError):
            continue
        for _, _, column, place in places(table.panels):
            if place.cell == cell and column.kind == "metric":
                yield _number(table, column, place)


def _number(table: Table, column: Column, place: TableCell) -> CellNumber:
    statistic, quoted = place.statistic, place.quotation
    published: dict[str, Any] = {}
    if quoted is not None and table.published is not None:
        published = {
            "published": table.published.id,
            "printed": quoted.number.printed,
            "difference": quoted.difference,
            "tolerance": quoted.tolerance,
            "verdict": quoted.word,
            "source": quoted.number.source,
        }
    return CellNumber(
        table=table.name,
        metric=column.name,
        title=column.title,
        text=f"{place.text} ± {place.std}" if place.std else place.text,
        mean=statistic.mean if statistic else None,
        std=statistic.std if statistic else None,
        n=(statistic.n or None) if statistic else None,
        **published,
    )
