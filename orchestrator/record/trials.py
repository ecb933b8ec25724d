"""Reads trials for clients: pages, one trial, its neighbours, and how far a sweep's trials are written."""

from collections.abc import Collection, Iterator
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.database import Access, next_cursor, next_position, page_after, require_sweep, with_labels
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
from workers.catalog import further_of_recipe

_STATES: Final = (SweepState.QUEUED, SweepState.FAILED, SweepState.CANCELLED)
UNEXPANDED: Final = sa.and_(sweep.c.started.is_(None), sweep.c.state.in_(_STATES))
"""The condition that a sweep is queued, or ended before its last trial was written."""
_UNEXPANDED: Final = sa.select(sweep.c.id).where(sweep.c.id == sa.bindparam("sweep"), UNEXPANDED)
_IN_PART: Final = sa.select(sweep.c.id).where(UNEXPANDED, sa.exists().where(trial.c.sweep_id == sweep.c.id))
WRITTEN: Final = (
    sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
    .where(trial.c.sweep_id == sweep.c.id)
    .scalar_subquery()
)
"""How many trials of a sweep have a row."""


def is_expanded(row: Any) -> bool:
    """Whether all trials of a sweep are written; `row` has the `started` and `state` of the sweep."""
    return row.started is not None or row.state not in _STATES


def unexpanded(connection: sa.Connection, number: int) -> bool:
    """Whether the sweep exists and some of its trials are not written yet."""
    return connection.execute(_UNEXPANDED, {"sweep": number}).first() is not None


def of_whole(connection: sa.Connection, among: Collection[int] | None = None) -> list[sa.ColumnElement[bool]]:
    """The SQL conditions that leave out trials of partly written sweeps.

    `among`: the sweeps to check, `None` for all. Empty if there is no such sweep, so that indexes can be used.
    """
    query = _IN_PART if among is None else _IN_PART.where(sweep.c.id.in_(sorted(among)))
    parts = connection.scalars(query).all()
    return [trial.c.sweep_id.not_in(parts)] if parts else []


class ExpansionReader(Access):
    """Reads how far the trials of a queued sweep are written."""

    def cells(self, number: int) -> Iterator[Labels]:
        """The labels of a sweep's written cells, in order."""
        query = sa.select(cell.c.labels).where(cell.c.sweep_id == number).order_by(cell.c.cell)
        return self._labels(query)

    def candidates(self, number: int) -> Iterator[Labels]:
        """The labels of a sweep's written candidates, in order."""
        query = sa.select(candidate.c.labels).where(candidate.c.sweep_id == number)
        return self._labels(query.order_by(candidate.c.cell, candidate.c.candidate))

    def last_place(self, number: int) -> tuple[int, int, int] | None:
        """The indices of the cell, candidate and repeat of a sweep's last written trial, or `None`."""
        query = sa.select(trial.c.cell, trial.c.candidate, trial.c.repeat).where(trial.c.sweep_id == number)
        row = self._row(query.order_by(trial.c.position.desc()).limit(1))
        return None if row is None else (row.cell, row.candidate, row.repeat)

    def _labels(self, query: sa.Select[tuple[Any]]) -> Iterator[Labels]:
        with self._database.reading() as connection:
            yield from connection.scalars(query)


class TrialReader(Access):
    """Reads trials with their labels, states and results."""

    def page(
        self, sweep: int, state: str | None = None, cell: int | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[TrialSummary]:
        """A page of a sweep's trials in the order of its plan, once they are all written; raises NotFoundError."""
        query = page_after(_SUMMARIES.where(trial.c.sweep_id == sweep), trial.c.position, cursor, limit)
        if state is not None:
            query = query.where(trial.c.state == state)
        if cell is not None:
            query = query.where(trial.c.cell == cell)
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            rows = [] if unexpanded(connection, sweep) else connection.execute(query).all()
        items = [TrialSummary(**_summary(row)) for row in rows[:limit]]
        return Page(items=items, next_cursor=next_cursor(rows, limit, "position"))

    def get(self, trial: int) -> TrialView:
        """The trial with a number, with all details; raises NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(_WHOLE, {"trial": trial}).one_or_none()
            if row is None:
                raise NotFoundError(f"no trial {trial}")
            attempts = _attempts(connection, row.training_id)
            evaluation = _evaluation(connection, row.evaluation_id, further_of_recipe(row.recipe))
            evaluated_from = _evaluated_from(connection, row.source, further_of_recipe(row.recipe))
            reused_from = first_trial(connection, row.training_id) if row.reused else None
            replaced = [
                Replaced(training=former.uid, step=former.step, total_steps=former.total_steps)
                for former in _predecessors(connection, row.training_id)
            ]
        result = row.result or {}
        return TrialView(
            **_summary(row), sweep_name=row.sweep_name, fingerprint=row.fingerprint, training=row.training_uid,
            recipe=row.recipe, attempts=attempts, metrics=row.metrics or {}, best_step=row.best_step,
            seconds=row.seconds, provenance=result.get("provenance", {}), reused_from=reused_from, trace=row.trace,
            replaced=replaced, evaluation=evaluation, evaluated_from=evaluated_from,
            reason=row.reason if row.state == TrialState.PRUNED else None,
        )  # fmt: skip

    def neighbours(self, number: int) -> list[Neighbour]:
        """The trials to compare a trial with on its page, each with the differences of the recipes."""
        columns = (trial.c.id, trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.repeat, training.c.recipe)
        joined = sa.select(*columns).join(training, training.c.id == trial.c.training_id)
        with self._database.reading() as connection:
            own = connection.execute(joined.where(trial.c.id == number)).one_or_none()
            if own is None:
                return []
            here = joined.where(trial.c.sweep_id == own.sweep_id, trial.c.cell == own.cell, trial.c.id != number)
            summary = sa.select(cell.c.summary).where(cell.c.sweep_id == own.sweep_id, cell.c.cell == own.cell)
            best = (connection.scalar(summary) or {}).get("candidate")
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

    def keys(self, sweep: int) -> list[TrialKey]:
        """The places and fingerprints of a sweep's trials in order, to compare a wider spec with.

        With the fingerprints of their evaluations, except failed ones, which may be requested again.
        """
        to_be = training.alias()
        coming = sa.and_(to_be.c.id == trial.c.evaluation_id, to_be.c.state.not_in(EVALUATION_FAILED))
        query = with_labels(
            sa.select(
                trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.repeat_labels,
                sa.func.coalesce(to_be.c.fingerprint, training.c.fingerprint).label("fingerprint"),
                training.c.stamp, trial.c.id.label("trial"), training.c.base,
                *(
                    sa.case((to_be.c.id.is_(None), training.c.recipe[field]), else_=to_be.c.recipe[field]).label(field)
                    for field in ("metrics", "figures")
                ),
            )
            .join(training, training.c.id == trial.c.training_id)
            .outerjoin(to_be, coming)
            .where(trial.c.sweep_id == sweep)
            .order_by(trial.c.position)
        )  # fmt: skip
        with self._database.reading() as connection:
            rows = [dict(row._mapping) for row in connection.execute(query)]
        asked = [{field: row.pop(field) for field in ("metrics", "figures")} for row in rows]
        return [
            TrialKey(**row, further=tuple(further_of_recipe(recipe))) for row, recipe in zip(rows, asked, strict=True)
        ]

    def has_active(self, sweep: int, cell: int) -> bool:
        """Whether a trial of a cell waits or runs."""
        query = sa.select(trial.c.id).where(trial.c.sweep_id == sweep, trial.c.cell == cell)
        return self._exists(query.where(trial.c.state.in_(TRIAL_ACTIVE)))

    def last_position(self, sweep: int) -> int:
        """The position of a sweep's last trial in its plan, or -1."""
        with self._database.reading() as connection:
            return next_position(connection, sweep) - 1


# Queries are built once, since pages run them every few seconds.
_SUMMARIES: Final = with_labels(
    sa.select(
        trial.c.id, trial.c.uid, trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.position,
        trial.c.repeat_labels, trial.c.training_id, trial.c.state, trial.c.diverged, trial.c.reused, training.c.step,
        training.c.total_steps, training.c.score, training.c.error,
    )
    .select_from(trial)
    .join(training, training.c.id == trial.c.training_id)
)  # fmt: skip
_WHOLE: Final = (
    _SUMMARIES.add_columns(
        training.c.uid.label("training_uid"), training.c.fingerprint, training.c.recipe, training.c.metrics,
        training.c.best_step, training.c.seconds, training.c.result, training.c.trace, trial.c.reason,
        trial.c.evaluation_id, training.c.source, sweep.c.name.label("sweep_name"),
    )
    .join(sweep, sweep.c.id == trial.c.sweep_id)
    .where(trial.c.id == sa.bindparam("trial"))
)  # fmt: skip


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
    names = ("number", "uid", "state", "host", "started", "ended", "reason", "resumed_from")
    renamed = (attempt.c.holder.label("slot"), attempt.c.slot.label("requested"))
    query = sa.select(*(attempt.c[name] for name in names), *renamed).where(attempt.c.training_id == training_id)
    rows = connection.execute(query.order_by(attempt.c.number))
    return [AttemptView.model_validate(row, from_attributes=True) for row in rows]


def _training(connection: sa.Connection, number: int | None) -> sa.Row[Any] | None:
    return connection.execute(sa.select(training).where(training.c.id == number)).one_or_none() if number else None


def _evaluation(connection: sa.Connection, training_id: int | None, known: list[str]) -> EvaluationView | None:
    row = _training(connection, training_id)
    if row is None:
        return None
    return EvaluationView(
        training=row.uid, state=row.state,
        metrics=[name.partition(" ")[0] for name in further_of_recipe(row.recipe) if name not in known],
        error=row.error if row.state == TrialState.FAILED else None, attempts=_attempts(connection, row.id),
    )  # fmt: skip


def _evaluated_from(connection: sa.Connection, source: int | None, asked: list[str]) -> EvaluatedFrom | None:
    row = _training(connection, source)
    if row is None:
        return None
    shown = sa.select(trial.c.id, trial.c.sweep_id).where(trial.c.training_id == source).order_by(trial.c.id).limit(1)
    first = connection.execute(shown).one_or_none()
    return EvaluatedFrom(
        training=row.uid, trial=first and first.id, sweep=first and first.sweep_id,
        metrics=[name.partition(" ")[0] for name in asked if name not in further_of_recipe(row.recipe)],
    )  # fmt: skip


def first_trial(connection: sa.Connection, training_id: int) -> int | None:
    """The first finished trial for which a training was run; the others reused the training."""
    trained = (trial.c.training_id == training_id, trial.c.state == TrialState.FINISHED, ~trial.c.reused)
    first: int | None = connection.scalar(sa.select(sa.func.min(trial.c.id)).where(*trained))
    return first


def of_trial(connection: sa.Connection, number: int, column: sa.Column[int]) -> int:
    """The value of a column of a trial, such as its training; raises NotFoundError."""
    found = connection.scalar(sa.select(column).where(trial.c.id == number))
    if found is None:
        raise NotFoundError(f"no trial {number}")
    return int(found)


def _predecessors(connection: sa.Connection, heir: int) -> list[Any]:
    """The trainings whose trials moved to this training, those of the last release first, with their progress.

    Without finished trainings, which were left for further metrics: nothing of them was trained again.
    """
    columns = (training.c.id, training.c.uid, training.c.stamp, training.c.step, training.c.total_steps)
    unfinished = training.c.state != TrialState.FINISHED
    query = sa.select(*columns).where(unfinished).order_by(training.c.id)
    replaced: list[Any] = []
    wanted = [heir]
    while wanted:
        rows = connection.execute(query.where(training.c.heir.in_(wanted))).all()
        replaced += rows
        wanted = [row.id for row in rows]
    return replaced
