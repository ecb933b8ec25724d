"""One cell of a sweep: who competed in it, who won, and which numbers of which tables it fills."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from orchestrator.publish.aggregate import CandidateOutcome, Means, direction, of_cell, selection, summary_of
from orchestrator.publish.tables import build
from orchestrator.publish.tables.layout import Baselines, metric_form, parse
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.spec.layouts import TableSpec
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.runs import Cell, Labels, Statistic, SweepOutcomes, TrialOutcome, TrialProvenance, mixture
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import Links
from orchestrator.views.tables import CellCandidate, CellNumber, CellTrial, CellView, ComparedCell
from workers.catalog import Catalog, changes

Aging = Callable[[str], Sequence[str]]
"""What has other numbers today than under a stamp, of which a thousand trials may have the same."""


def alone(spec: Mapping[str, Any], cell: Cell, catalog: Catalog) -> bool:
    """Whether no other cell of its sweep decides on what the tables print of a cell."""
    whole = set(spec.get("compare") or {}) <= set(cell.labels)
    return whole and not _subtracted(spec) and not _scaled(spec, catalog)


def needed(spec: Mapping[str, Any], cells: Sequence[Cell], cell: Cell, catalog: Catalog) -> list[int]:
    """Which of a sweep's cells decide on what its tables print of a cell.

    Itself, those from which it is subtracted, and one for each axis that it lacks: what varies stands otherwise in a
    table than what does not. All of them where the numbers of a column decide together on their decimals.
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
    """Whether a table leaves the decimals of numbers open that are no percents."""
    return any(
        table.decimals is None and column.decimals is None and metric_form(column, table, catalog) != "percent"
        for table in _layouts(spec)
        for column in table.metric_columns
    )


def _layouts(spec: Mapping[str, Any]) -> list[TableSpec]:
    return [parse(spec, name) for name in spec.get("tables") or {}]


def trace(outcomes: SweepOutcomes, cell: int, evidence: Iterable[TrialProvenance], catalog: Catalog) -> CellView:
    """Everything behind the numbers of a cell, without links; of the `outcomes` those that are `needed` will do.

    NotFoundError where the sweep has no such cell.
    """
    traced = next((one for one in outcomes.cells if one.index == cell), None)
    if traced is None:
        raise NotFoundError(f"sweep {outcomes.sweep} has no cell {cell}; it has {len(outcomes.cells)}, from 0")
    select = selection(outcomes.spec)
    competing = of_cell(outcomes, cell)
    summary = summary_of(cell, competing, select.key, direction(select.metric, catalog))
    by_candidate: dict[int, list[TrialProvenance]] = {}
    for trial in evidence:
        by_candidate.setdefault(trial.outcome.candidate, []).append(trial)
    aging = cache(partial(_changed, catalog))
    listed = [
        _candidate(one, by_candidate.get(one.index, []), select.key, summary.candidate, aging) for one in competing
    ]
    return CellView(
        sweep=outcomes.sweep,
        sweep_name=outcomes.name,
        index=cell,
        labels=dict(traced.labels),
        status=summary.status,
        selection_key=select.key,
        numbers=list(_numbers(outcomes, cell, catalog)),
        candidates=sorted(listed, key=lambda one: not one.selected),
        mixed=list(
            mixture(
                one
                for one in outcomes.trials_of(cell)
                if one.candidate == summary.candidate and one.state is TrialState.FINISHED
            )
        ),
    )


def compared(outcomes: SweepOutcomes, index: int, catalog: Catalog) -> tuple[ComparedCell, TrialOutcome | None]:
    """A cell without its recipe, and a trial that has it; NotFoundError where there is no such cell."""
    cell = next((one for one in outcomes.cells if one.index == index), None)
    if cell is None:
        raise NotFoundError(f"sweep {outcomes.sweep} has no cell {index}")
    select, candidates = selection(outcomes.spec), of_cell(outcomes, index)
    summary = summary_of(index, candidates, select.key, direction(select.metric, catalog))
    chosen = candidates[0].index if len(candidates) == 1 else summary.candidate
    trials = [one for one in outcomes.trials_of(index) if chosen is None or one.candidate == chosen]
    view = ComparedCell(
        sweep=outcomes.sweep, sweep_name=outcomes.name, index=index, labels=dict(cell.labels), status=summary.status,
        selection_key=select.key, candidates=len(candidates),
        selected=next((dict(one.labels) for one in candidates if one.index == chosen), None),
        trials=dict(Counter("diverged" if one.diverged else one.state.value for one in trials)), recipe={},
        metrics=dict(summary.metrics or (_so_far(trials) if chosen is not None else {})),
    )  # fmt: skip
    return view, trials[0] if trials and chosen is not None else None


def linked(view: CellView, links: Links, experiment: str | None, runs: Mapping[int, str], own: str | None) -> CellView:
    """The view with the pages of its runs in MLflow: `runs` by trial, `own` of the cell itself."""

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
    one: CandidateOutcome, evidence: Iterable[TrialProvenance], key: str, selected: int | None, aging: Aging
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
    outcome = one.outcome
    return CellTrial(
        trial=outcome.trial,
        uid=one.uid,
        repeat=outcome.repeat,
        labels=dict(outcome.repeat_labels),
        state=outcome.state,
        diverged=outcome.diverged,
        reused=outcome.reused,
        score=one.score,
        training=one.training,
        fingerprint=one.fingerprint,
        dataset=one.dataset,
        data_hash=one.data_hash,
        git_commit=one.commit,
        versions=one.versions,
        outdated=list(aging(outcome.stamp)),
        device=one.device,
        host=str(one.provenance["host"]) if one.provenance.get("host") else None,
        seconds=one.seconds,
        error=one.error,
        reason=one.reason,
        url=f"/v1/trials/{outcome.trial}",
        mlflow_url=None,
    )


def _changed(catalog: Catalog, stamp: str) -> tuple[str, ...]:
    """What has other numbers today than under a stamp, in words."""
    return tuple(str(change) for change in changes(stamp, catalog))


def _numbers(outcomes: SweepOutcomes, cell: int, catalog: Catalog) -> Iterator[CellNumber]:
    """What the cell fills in each table of the spec; a table that cannot be made is passed over."""
    for name in outcomes.spec.get("tables") or {}:
        try:
            table = build.build(outcomes, name, catalog)
        except (ConflictError, NotFoundError):
            continue
        for panel in table.panels:
            for row in panel.rows:
                for column, place in zip(panel.columns, row.cells, strict=True):
                    if place.cell == cell and column.kind == "metric":
                        yield _number(table, column, place)


def _number(table: Table, column: Column, place: TableCell) -> CellNumber:
    statistic, quoted = place.statistic, place.quotation
    own = CellNumber(
        table=table.name,
        metric=column.name,
        title=column.title,
        text=f"{place.text} ± {place.std}" if place.std else place.text,
        mean=statistic.mean if statistic else None,
        std=statistic.std if statistic else None,
        n=(statistic.n or None) if statistic else None,
    )
    if quoted is None or table.published is None:
        return own
    return own.model_copy(
        update={
            "published": table.published.id,
            "printed": quoted.number.printed,
            "difference": quoted.reproduction.difference,
            "tolerance": quoted.reproduction.tolerance,
            "verdict": quoted.reproduction.word,
            "source": quoted.number.source or None,
        }
    )


def _so_far(trials: Sequence[TrialOutcome]) -> Mapping[str, Statistic]:
    finished = [one for one in trials if one.state is TrialState.FINISHED and not one.diverged]
    return Means(finished) if finished else {}
