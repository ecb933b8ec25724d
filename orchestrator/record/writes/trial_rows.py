"""The rows of trials, and the trainings they share."""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import chunked, insertion
from orchestrator.record.writes.dirty_flags import mark_trials
from orchestrator.record.writes.sharing import Known, Shared, project_of
from orchestrator.record.writes.trial_places import TrialPlaces, even, labelled, take_results
from orchestrator.views.runs import PlannedTrial
from orchestrator.views.states import TrialState
from workers.catalog import Need

_CHUNK = 1_000
"""Trials a statement: far below the 32,766 parameters that SQLite takes."""


class TrialRows:
    """Writes trials in chunks and finds or makes their trainings."""

    def __init__(
        self,
        connection: sa.Connection,
        sweep: int,
        uid: uuid.UUID,
        fresh: bool,
        first: int = 0,
        *,
        whole: bool = False,
    ) -> None:
        """`whole`: the sweep itself is fresh, and not only what is added to it."""
        self._connection = connection
        self._sweep, self._uid, self._now = sweep, uid, datetime.now(UTC)
        self._trainings: dict[str, Known] = {}  # by fingerprint: those of the chunk that is written
        self._shared = Shared(connection, fresh, project_of(connection, sweep), sweep if whole else None)
        self._places = TrialPlaces(connection, sweep)
        self._position = first

    def write(self, trials: Iterable[PlannedTrial]) -> None:
        """Append the trials in their order."""
        for chunk in chunked(trials, _CHUNK):
            write_needs(self._connection, [one.need for one in chunk if one.need], self._sweep)
            self._trainings = self._shared.find(chunk)
            first = self._position
            named = labelled(self._connection, self._places, self._sweep, ((one.cell, one.candidate) for one in chunk))
            rows = even([self._row(one) | named[one.cell, one.candidate] | self._repeated(one) for one in chunk])
            # Without RETURNING the driver prepares one statement; with it psycopg parses one of 12,000 parameters.
            self._connection.execute(sa.insert(schema.trial), rows)
            self._mark_begun(first)

    def _mark_begun(self, first: int) -> None:
        table = schema.trial
        written = table.c.position.between(first, self._position - 1)  # both ends: there are no statistics yet
        begun = sa.select(table.c.id).where(table.c.sweep_id == self._sweep, written)
        rows = self._connection.execute(begun.where(table.c.state != TrialState.WAITING)).all()
        mark_trials(self._connection, [(self._sweep, row.id) for row in rows])
        take_results(self._connection, [row.id for row in rows])

    def _repeated(self, trial: PlannedTrial) -> dict[str, Any]:
        return self._places.of_labels("repeat", trial.repeat_labels)

    def _row(self, trial: PlannedTrial) -> dict[str, Any]:
        position, self._position = self._position, self._position + 1
        training = self._trainings[trial.fingerprint]
        reused = training.state is TrialState.FINISHED
        return {
            "uid": str(uuid.uuid5(self._uid, str(position))), "sweep_id": self._sweep, "cell": trial.cell,
            "candidate": trial.candidate, "repeat": trial.repeat, "position": position,
            "repeat_labels": dict(trial.repeat_labels), "training_id": training.id, "state": training.state,
            "reused": reused, "diverged": reused and training.diverged,
            "started": None if training.state is TrialState.WAITING else self._now,
            "ended": self._now if reused else None,
            "slot": trial.slot.model_dump(mode="json") if trial.slot else None,
        }  # fmt: skip


def write_needs(connection: sa.Connection, needs: Iterable[Need], sweep: int | None = None) -> None:
    """Have a row for each need, and one that says that the sweep has it."""
    for key, one in {one.key: one for one in needs}.items():
        row = insertion(connection, schema.need).values(key=key, reads=one.model_dump(mode="json"))
        connection.execute(row.on_conflict_do_nothing())
        if sweep is not None:
            its = insertion(connection, schema.sweep_need).values(sweep_id=sweep, need=key)
            connection.execute(its.on_conflict_do_nothing())


def insert(connection: sa.Connection, table: sa.Table, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows, in chunks that every database takes."""
    for chunk in chunked(rows, _CHUNK):
        connection.execute(sa.insert(table), chunk)
