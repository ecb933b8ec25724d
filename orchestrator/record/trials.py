"""Trials as people see them: pages, one trial, its neighbours, and how far a sweep is expanded."""

from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, decode, encode, of_candidate, require_sweep
from orchestrator.record.schema import attempt, candidate, cell, sweep, training, trial
from orchestrator.record.trainings import EVALUATION_FAILED
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import Page
from orchestrator.views.runs import Labels, TrialKey
from orchestrator.views.states import TRIAL_ACTIVE, SweepState, TrialState
from orchestrator.views.trials import (
    AttemptView,
    EvaluatedFrom,
    EvaluationView,
    Neighbour,
    Replaced,
    TrialSummary,
    TrialView,
    differences,
)
from workers.catalog import asked_of

_STATES: Final = (SweepState.QUEUED, SweepState.FAILED, SweepState.CANCELLED)
UNEXPANDED: Final = sa.and_(sweep.c.started.is_(None), sweep.c.state.in_(_STATES))
"""Of a sweep: whether it is queued, or ended before its last trial was written."""
_UNEXPANDED: Final = sa.select(sweep.c.id).where(sweep.c.id == sa.bindparam("sweep"), UNEXPANDED)
_IN_PART: Final = sa.select(sweep.c.id).where(UNEXPANDED, sa.exists().where(trial.c.sweep_id == sweep.c.id))
WRITTEN: Final = (
    sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
    .where(trial.c.sweep_id == sweep.c.id)
    .scalar_subquery()
)
"""Of a sweep: how many of its trials have a row."""


class TrialPlace(NamedTuple):
    """Where a trial stands."""

    cell: int
    candidate: int
    repeat: int


def is_expanded(row: Any) -> bool:
    """Whether all rows of a sweep are written, of which `row` has `started` and `state`."""
    return row.started is not None or row.state not in _STATES


def unexpanded(connection: sa.Connection, number: int) -> bool:
    """Whether there is such a sweep and some of its rows are not written yet."""
    return connection.execute(_UNEXPANDED, {"sweep": number}).first() is not None


def of_whole(connection: sa.Connection, among: Collection[int] | None = None) -> list[sa.ColumnElement[bool]]:
    """The conditions on trials that leave out those of sweeps that are written in part; `among`: of these sweeps.

    There are none where no such sweep is: what goes through all trials is then answered by the indexes that it was.
    """
    query = _IN_PART if among is None else _IN_PART.where(sweep.c.id.in_(sorted(among)))
    parts = connection.execute(query).scalars().all()
    return [trial.c.sweep_id.not_in(parts)] if parts else []


class ExpansionReader(Access):
    """Reads what is written of a sweep, for whoever goes on with it."""

    def cells(self, number: int) -> Iterator[Labels]:
        """The labels of its cells, in order."""
        query = sa.select(cell.c.labels).where(cell.c.sweep_id == number).order_by(cell.c.cell)
        return self._labels(query)

    def candidates(self, number: int) -> Iterator[Labels]:
        """The labels of its candidates, in order."""
        query = sa.select(candidate.c.labels).where(candidate.c.sweep_id == number)
        return self._labels(query.order_by(candidate.c.cell, candidate.c.candidate))

    def last_place(self, number: int) -> TrialPlace | None:
        """That of its last trial; none where it has none."""
        query = sa.select(trial.c.cell, trial.c.candidate, trial.c.repeat).where(trial.c.sweep_id == number)
        with self._database.reading() as connection:
            row = connection.execute(query.order_by(trial.c.position.desc()).limit(1)).first()
        return None if row is None else TrialPlace(*row)

    def _labels(self, query: sa.Select[tuple[Any]]) -> Iterator[Labels]:
        with self._database.reading() as connection:
            yield from connection.execute(query).scalars()


class NeighbourReader(Access):
    """Reads what stands beside a trial."""

    def of(self, number: int) -> list[Neighbour]:
        """Those that there are, each with how its recipe differs; none of a trial that is not there."""
        columns = (trial.c.id, trial.c.candidate, trial.c.repeat, training.c.recipe)
        joined = sa.select(*columns).join(training, training.c.id == trial.c.training_id)
        place = sa.select(trial.c.sweep_id, trial.c.cell).where(trial.c.id == number)
        with self._database.reading() as connection:
            own = connection.execute(joined.where(trial.c.id == number)).one_or_none()
            if own is None:
                return []
            where = connection.execute(place).one()
            here = joined.where(trial.c.sweep_id == where.sweep_id, trial.c.cell == where.cell, trial.c.id != number)
            summary = sa.select(cell.c.summary).where(cell.c.sweep_id == where.sweep_id, cell.c.cell == where.cell)
            best = (connection.execute(summary).scalar() or {}).get("candidate")
            other = here.where(trial.c.candidate == own.candidate).order_by(trial.c.repeat).limit(1)
            wanted = [("the same candidate's other repeat", other)]
            if best is not None and best != own.candidate:
                rank = sa.case((trial.c.repeat == own.repeat, 0), else_=1)
                chosen = here.where(trial.c.candidate == best).order_by(rank, trial.c.repeat).limit(1)
                wanted.insert(0, ("the cell's selected candidate", chosen))
            rows = [(why, connection.execute(query).one_or_none()) for why, query in wanted]
        return [
            Neighbour(trial=row.id, why=why, differences=differences(own.recipe, row.recipe))
            for why, row in rows
            if row is not None
        ]


class TrialReader(Access):
    """Reads trials."""

    def page(
        self,
        sweep: int,
        state: str | None = None,
        cell: int | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[TrialSummary]:
        """A sweep's trials in the order of its plan, none before they all have a row; raises NotFoundError."""
        table = schema.trial
        query = _SUMMARIES.where(table.c.sweep_id == sweep).order_by(table.c.position).limit(limit + 1)
        if state is not None:
            query = query.where(table.c.state == state)
        if cell is not None:
            query = query.where(table.c.cell == cell)
        if cursor is not None:
            query = query.where(table.c.position > decode(cursor))
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            rows = [] if unexpanded(connection, sweep) else connection.execute(query).all()
        shown = rows[:limit]
        items = [TrialSummary(**_summary(row)) for row in shown]
        return Page[TrialSummary](items=items, next_cursor=encode(shown[-1].position) if len(rows) > limit else None)

    def get(self, trial: int) -> TrialView:
        """One trial whole; raises NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(_WHOLE, {"trial": trial}).one_or_none()
            if row is None:
                raise NotFoundError(f"no trial {trial}")
            attempts = _attempts(connection, row.training_id)
            evaluation = _evaluation(connection, row.evaluation_id, asked_of(row.recipe))
            evaluated_from = _evaluated_from(connection, row.source, asked_of(row.recipe))
            reused_from = first_trial(connection, row.training_id) if row.reused else None
            replaced = [
                Replaced(training=one.uid, step=one.step, total_steps=one.total_steps)
                for one in _predecessors(connection, row.training_id)
            ]
        result = row.result or {}
        return TrialView(
            **_summary(row), sweep_name=row.sweep_name, fingerprint=row.fingerprint, training=row.training_uid,
            recipe=row.recipe, attempts=attempts, metrics=row.metrics or {}, best_step=row.best_step,
            seconds=row.seconds, provenance=result.get("provenance", {}), reused_from=reused_from, trace=row.trace,
            replaced=replaced, evaluation=evaluation, evaluated_from=evaluated_from,
            reason=row.reason if row.state == TrialState.PRUNED else None,
        )  # fmt: skip

    def keys(self, sweep: int) -> list[TrialKey]:
        """All trials of a sweep in their order; an evaluation that failed was not asked for: it may be once more."""
        to_be = training.alias()
        coming = sa.and_(to_be.c.id == trial.c.evaluation_id, to_be.c.state.not_in(EVALUATION_FAILED))
        query = (
            sa.select(
                trial.c.cell, cell.c.labels.label("cell_labels"), trial.c.candidate,
                candidate.c.labels.label("candidate_labels"), trial.c.repeat, trial.c.repeat_labels,
                sa.func.coalesce(to_be.c.fingerprint, training.c.fingerprint).label("fingerprint"),
                training.c.stamp, trial.c.id.label("trial"), training.c.base,
                sa.case((to_be.c.id.is_(None), training.c.recipe["metrics"]), else_=to_be.c.recipe["metrics"])
                .label("metrics"),
            )
            .join(training, training.c.id == trial.c.training_id)
            .outerjoin(to_be, coming)
            .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
            .join(
                candidate,
                sa.and_(
                    candidate.c.sweep_id == trial.c.sweep_id,
                    candidate.c.cell == trial.c.cell,
                    candidate.c.candidate == trial.c.candidate,
                ),
            )
            .where(trial.c.sweep_id == sweep)
            .order_by(trial.c.position)
        )  # fmt: skip
        with self._database.reading() as connection:
            return [
                TrialKey(**{**row._mapping, "metrics": tuple(row.metrics or ())}) for row in connection.execute(query)
            ]

    def has_active(self, sweep: int, cell: int) -> bool:
        """Whether a trial of a cell waits or runs."""
        query = sa.select(schema.trial.c.id).where(schema.trial.c.sweep_id == sweep, schema.trial.c.cell == cell)
        with self._database.reading() as connection:
            return connection.execute(query.where(schema.trial.c.state.in_(TRIAL_ACTIVE)).limit(1)).first() is not None

    def last_position(self, sweep: int) -> int:
        """The position of a sweep's last trial; -1 when it has none."""
        query = sa.select(sa.func.coalesce(sa.func.max(schema.trial.c.position), -1)).where(
            schema.trial.c.sweep_id == sweep
        )
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())


def _summaries() -> sa.Select[Any]:
    table = schema.trial
    return (
        sa.select(
            table.c.id, table.c.uid, table.c.sweep_id, table.c.cell, table.c.candidate, table.c.repeat,
            table.c.position, table.c.repeat_labels, table.c.training_id, table.c.state, table.c.diverged,
            table.c.reused, training.c.step, training.c.total_steps, training.c.score, training.c.error,
            cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"),
        )
        .select_from(table)
        .join(training, training.c.id == table.c.training_id)
        .join(cell, sa.and_(cell.c.sweep_id == table.c.sweep_id, cell.c.cell == table.c.cell))
        .join(candidate, of_candidate())
    )  # fmt: skip


def _whole() -> sa.Select[Any]:
    whole = (
        training.c.uid.label("training_uid"), training.c.fingerprint, training.c.recipe, training.c.metrics,
        training.c.best_step, training.c.seconds, training.c.result, training.c.trace, schema.trial.c.reason,
        schema.trial.c.evaluation_id, training.c.source,
    )  # fmt: skip
    query = _SUMMARIES.add_columns(*whole, schema.sweep.c.name.label("sweep_name"))
    query = query.join(schema.sweep, schema.sweep.c.id == schema.trial.c.sweep_id)
    return query.where(schema.trial.c.id == sa.bindparam("trial"))


# Made once: pages ask them every few seconds.
_SUMMARIES: Final = _summaries()
_WHOLE: Final = _whole()
_ATTEMPTS: Final = (
    sa.select(attempt).where(attempt.c.training_id == sa.bindparam("training")).order_by(attempt.c.number)
)


def _summary(row: sa.Row[Any]) -> dict[str, Any]:
    finished, failed = row.state == TrialState.FINISHED, row.state == TrialState.FAILED
    return {
        "id": row.id, "uid": row.uid, "sweep": row.sweep_id, "cell": row.cell, "candidate": row.candidate,
        "repeat": row.repeat, "labels": {**row.cell_labels, **row.candidate_labels, **row.repeat_labels},
        "state": row.state, "diverged": row.diverged, "reused": row.reused, "step": row.step,
        "total_steps": row.total_steps, "score": row.score if finished else None,
        "error": (row.error or "failed") if failed else None,
    }  # fmt: skip


def _attempts(connection: sa.Connection, training_id: int) -> list[AttemptView]:
    return [
        AttemptView(
            number=row.number, uid=row.uid, state=row.state, slot=row.holder, asked=row.slot, host=row.host,
            started=row.started, ended=row.ended, reason=row.reason, resumed_from=row.resumed_from,
        )
        for row in connection.execute(_ATTEMPTS, {"training": training_id})
    ]  # fmt: skip


def _training(connection: sa.Connection, number: int | None) -> sa.Row[Any] | None:
    if number is None:
        return None
    return connection.execute(sa.select(training).where(training.c.id == number)).one_or_none()


def _evaluation(connection: sa.Connection, training_id: int | None, known: list[str]) -> EvaluationView | None:
    row = _training(connection, training_id)
    if row is None:
        return None
    return EvaluationView(
        training=row.uid, state=row.state, metrics=[name for name in asked_of(row.recipe) if name not in known],
        error=row.error if row.state == TrialState.FAILED else None, attempts=_attempts(connection, row.id),
    )  # fmt: skip


def _evaluated_from(connection: sa.Connection, source: int | None, asked: list[str]) -> EvaluatedFrom | None:
    row = _training(connection, source)
    if row is None:
        return None
    table = schema.trial
    shown = sa.select(table.c.id, table.c.sweep_id).where(table.c.training_id == source).order_by(table.c.id).limit(1)
    first = connection.execute(shown).one_or_none()
    return EvaluatedFrom(
        training=row.uid, trial=first and first.id, sweep=first and first.sweep_id,
        metrics=[name for name in asked if name not in asked_of(row.recipe)],
    )  # fmt: skip


def first_trial(connection: sa.Connection, training_id: int) -> int | None:
    """The first of the trials that the training was run for and that took its result."""
    table = schema.trial
    trained = (table.c.training_id == training_id, table.c.state == TrialState.FINISHED, ~table.c.reused)
    return connection.execute(sa.select(sa.func.min(table.c.id)).where(*trained)).scalar_one_or_none()


def training_of(connection: sa.Connection, trial: int) -> int:
    """The id of a trial's training; raises NotFoundError."""
    table = schema.trial
    found = connection.execute(sa.select(table.c.training_id).where(table.c.id == trial)).scalar_one_or_none()
    if found is None:
        raise NotFoundError(f"no trial {trial}")
    return int(found)


def _predecessors(connection: sa.Connection, heir: int) -> list[Any]:
    """The trainings whose trials moved to this one, those of the last release first, with what they had trained.

    One that finished was left for further metrics: nothing of it was trained anew.
    """
    table = schema.training
    columns = (table.c.id, table.c.uid, table.c.stamp, table.c.step, table.c.total_steps)
    unfinished = table.c.state != TrialState.FINISHED
    query = sa.select(*columns).where(unfinished).order_by(table.c.id)
    replaced: list[Any] = []
    wanted = [heir]
    while wanted:
        rows = connection.execute(query.where(table.c.heir.in_(wanted))).all()
        replaced += rows
        wanted = [row.id for row in rows]
    return replaced
