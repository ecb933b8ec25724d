"""Reads the results from which a sweep's tables are computed, and the provenance of every trial."""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.columns import number
from orchestrator.record.database import Access, absence, chunked, require_sweep
from orchestrator.record.schema import candidate, cell, request, training, trial
from orchestrator.record.trials import is_expanded, unexpanded
from orchestrator.views.errors import ConflictError, NotFoundError, timely
from orchestrator.views.runs import Candidate, Cell, SweepResults, TrialProvenance, TrialResult, origin_of
from orchestrator.views.states import TRIAL_ACTIVE, TrialState
from workers.catalog import stamp

_NEW: Final = training.alias()  # to which a trial moves once it has further metrics
_AT_ONCE: Final = 500


class TrialResultReader(Access):
    """Reads the metrics and provenance of trials."""

    def of(self, sweep: int, only: Collection[int] | None = None, *, trials: bool = True) -> SweepResults:
        """The trials of a sweep with their metrics, NaN for a missing number; raises NotFoundError.

        With `only`, of these cells (at most a thousand). Without `trials`, the cells and candidates only.
        """
        with self._database.reading() as connection:
            head = connection.execute(sa.select(schema.sweep).where(schema.sweep.c.id == sweep)).one_or_none()
            if head is None:
                raise NotFoundError(absence(connection, sweep))
            cells, candidates, read = tuple[Cell, ...](), tuple[Candidate, ...](), tuple[TrialResult, ...]()
            if is_expanded(head):
                cells, candidates = _cells(connection, sweep, only), _candidates(connection, sweep, only)
                read = tuple(_of_sweep(connection, sweep, only)) if trials else ()
            return SweepResults(
                sweep=head.id, name=head.name, state=head.state, spec=head.spec, cells=cells, candidates=candidates,
                trials=read,
            )  # fmt: skip

    def cells(self, sweep: int) -> tuple[Cell, ...]:
        """The cells of a sweep in order; empty before its trials are written."""
        with self._database.reading() as connection:
            return () if unexpanded(connection, sweep) else _cells(connection, sweep)

    def at(self, sweep: int, moment: datetime) -> SweepResults:
        """The results of a sweep as they were at a time: the trials planned then, with results if they had ended.

        A trial that got further metrics since then has the metrics of its former training. Raises ConflictError if
        these are not known, and NotFoundError.
        """
        now = self.of(sweep)
        extended = (request.c.sweep_id == sweep, request.c.kind == "extend", request.c.applied > moment)
        measured_at = sa.func.coalesce(training.c.ended, trial.c.ended).label("measured")
        its = (
            sa.select(trial.c.id, trial.c.training_id, measured_at)
            .join(training, training.c.id == trial.c.training_id)
            .where(trial.c.sweep_id == sweep, trial.c.ended <= moment)
        )
        with self._database.reading() as connection:
            later = connection.scalars(sa.select(request.c.arguments).where(*extended))
            begin = min((look["position"] for look in later if look and "position" in look), default=None)
            ended = {row.id: row for row in connection.execute(its)}
            measured = [row.training_id for row in ended.values() if row.measured > moment]
            former = _former_metrics(connection, measured, moment)
        if missing := sum(number not in former for number in measured):
            raise ConflictError(
                f"the results of sweep {sweep} at {moment:%Y-%m-%d %H:%M} UTC are not known: {missing} of its "
                "trainings were replaced since; compare with a bundle of that time"
            )

        def then(one: TrialResult) -> TrialResult:
            row = ended.get(one.trial)
            if row is None:
                return replace(one, state=TrialState.WAITING, diverged=False, values={}, coming=(), seconds=None)
            return replace(one, values=_values_of(former[row.training_id])) if row.training_id in former else one

        planned = tuple(then(one) for one in now.trials if begin is None or one.position < begin)
        gone = {(one.cell, one.candidate) for one in now.trials} - {(one.cell, one.candidate) for one in planned}
        candidates = tuple(one for one in now.candidates if (one.cell, one.index) not in gone)
        empty = {cell for cell, _ in gone} - {one.cell for one in candidates}
        return replace(
            now, cells=tuple(one for one in now.cells if one.index not in empty), candidates=candidates, trials=planned
        )

    def provenance(self, sweep: int, cell: int | None = None) -> Iterator[TrialProvenance]:
        """The trials of a sweep or of a cell with their provenance, in order; raises NotFoundError.

        Only a few hundred are in memory at once, since a sweep may have a hundred thousand with kilobytes each.
        """
        its = sa.select(trial.c.id).where(trial.c.sweep_id == sweep)
        if cell is not None:
            its = its.where(trial.c.cell == cell)
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            ids = [] if unexpanded(connection, sweep) else sorted(connection.scalars(its))  # the order of the plan
        for chunk in chunked(ids, _AT_ONCE):
            with self._database.reading() as connection:
                require_sweep(connection, sweep)
                rows = connection.execute(_PROVENANCES.where(trial.c.id.in_(chunk)).order_by(trial.c.id)).all()
            yield from map(_provenance, rows)


def _cells(connection: sa.Connection, sweep: int, only: Collection[int] | None = None) -> tuple[Cell, ...]:
    query = sa.select(cell.c.cell, cell.c.labels).where(cell.c.sweep_id == sweep).order_by(cell.c.cell)
    if only is not None:
        query = query.where(cell.c.cell.in_(only))
    return tuple(Cell(*row) for row in connection.execute(query))


def _candidates(connection: sa.Connection, sweep: int, only: Collection[int] | None) -> tuple[Candidate, ...]:
    columns = (candidate.c.cell, candidate.c.candidate, candidate.c.labels)
    query = sa.select(*columns).where(candidate.c.sweep_id == sweep).order_by(*columns[:2])
    if only is not None:
        query = query.where(candidate.c.cell.in_(only))
    return tuple(Candidate(*row) for row in connection.execute(query))


def _of_sweep(connection: sa.Connection, sweep: int, only: Collection[int] | None) -> Iterator[TrialResult]:
    query = (
        sa.select(
            trial.c.id, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.repeat_labels, trial.c.state,
            trial.c.diverged, trial.c.reused, trial.c.position, trial.c.seconds,
            sa.case((trial.c.state == TrialState.FINISHED, training.c.metrics)).label("metrics"),
            sa.case((trial.c.state == TrialState.FINISHED, training.c.stamp), else_="").label("stamp"),
            sa.case((trial.c.state == TrialState.FINISHED, training.c.origin), else_="").label("origin"),
            # without an evaluation, SQLite would give the text `null`, to be decoded for each row
            sa.case((_NEW.c.id.is_not(None), _NEW.c.recipe["metrics"])).label("coming"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .outerjoin(_NEW, sa.and_(_NEW.c.id == trial.c.evaluation_id, _NEW.c.state.in_(TRIAL_ACTIVE)))
        .where(trial.c.sweep_id == sweep)
    )  # fmt: skip
    rows: Iterable[sa.Row[Any]]
    if only is None:
        rows = connection.execute(query.order_by(trial.c.position))
    else:  # sorted here: SQLite would scan the whole sweep to return the rows in order
        rows = sorted(connection.execute(query.where(trial.c.cell.in_(only))), key=lambda row: row.position)
    for row in timely(rows):
        yield TrialResult(
            trial=row.id, cell=row.cell, candidate=row.candidate, repeat=row.repeat, repeat_labels=row.repeat_labels,
            state=TrialState(row.state), diverged=row.diverged, reused=row.reused, values=_values_of(row.metrics),
            stamp=sys.intern(row.stamp), origin=sys.intern(row.origin),
            coming=tuple(row.coming or ()), position=row.position, seconds=row.seconds,
        )  # fmt: skip


def _values_of(metrics: Mapping[str, Any] | None) -> Mapping[str, float]:
    """A result's metrics, with NaN for null."""
    # The keys of a hundred thousand rows would be half of the memory.
    return {sys.intern(key): number(value) for key, value in (metrics or {}).items()}


def _former_metrics(
    connection: sa.Connection, trainings: Collection[int], moment: datetime
) -> dict[int, Mapping[str, Any]]:
    """By training, the metrics that its trials showed at a time: of its source, or of a training that it replaced."""
    new, found = training.alias(), dict[int, Mapping[str, Any]]()
    pairs = sa.or_(training.c.id == new.c.source, training.c.heir == new.c.id)
    for chunk in chunked(dict.fromkeys(trainings), _AT_ONCE):
        query = (
            sa.select(new.c.id, training.c.metrics)
            .join(training, pairs)
            .where(new.c.id.in_(chunk), training.c.state == TrialState.FINISHED, training.c.ended <= moment)
            .order_by(training.c.ended)
        )
        found |= {row.id: row.metrics for row in connection.execute(query)}
    return found


def _provenance(row: Any) -> TrialProvenance:
    state = TrialState(row.state)
    finished = state is TrialState.FINISHED
    result = TrialResult(
        trial=row.id, cell=row.cell, candidate=row.candidate, repeat=row.repeat, repeat_labels=row.repeat_labels,
        state=state, diverged=row.diverged, reused=row.reused, values=_values_of(row.metrics) if finished else {},
        stamp=stamp(row.recipe) if finished else "", origin=origin_of(row.provenance or {}) if finished else "",
    )  # fmt: skip
    return TrialProvenance(
        result=result, uid=row.uid, training=row.training, fingerprint=row.fingerprint, recipe=row.recipe,
        provenance=(row.provenance or {}) if finished else {}, best_step=row.best_step if finished else None,
        seconds=row.seconds if finished else None, score=row.score if finished else None,
        error=row.error if state is TrialState.FAILED else None, run=row.mlflow_run,
        reason=row.reason if state is TrialState.PRUNED else None,
    )  # fmt: skip


_PROVENANCES: Final = sa.select(
    trial.c.id, trial.c.uid, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.repeat_labels, trial.c.state,
    trial.c.diverged, trial.c.reused, trial.c.reason, trial.c.mlflow_run, training.c.uid.label("training"),
    training.c.fingerprint, training.c.recipe, training.c.metrics, training.c.best_step, training.c.seconds,
    training.c.score, training.c.error, training.c.result["provenance"].label("provenance"),
).join(training, training.c.id == trial.c.training_id)  # fmt: skip
