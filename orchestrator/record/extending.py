"""Extending a sweep: the places that it has, and the rows of those that are added."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from orchestrator.lifecycle import SWEEP_STEPS, SweepState, before
from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.marks import mark
from orchestrator.record.schema import candidate, cell, training, trial
from orchestrator.record.starting import TrialRows, insert
from orchestrator.trial import Candidate, Cell, Labels, PlannedTrial


@dataclass(frozen=True, slots=True)
class Place:
    """A trial that exists, by numbers and by labels."""

    cell: int
    cell_labels: Labels
    candidate: int
    candidate_labels: Labels
    repeat: int
    repeat_labels: Labels
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Extension:
    """A wider spec, and what it has beyond the places that exist."""

    text: str
    spec: Mapping[str, Any]
    total: int
    cells: Sequence[Cell]
    candidates: Sequence[Candidate]
    trials: Sequence[PlannedTrial]


class Extending(Access):
    """What makes a sweep grow."""

    def places(self, sweep: int) -> list[Place]:
        """All trials of a sweep in their order."""
        query = (
            sa.select(
                trial.c.cell, cell.c.labels.label("cell_labels"), trial.c.candidate,
                candidate.c.labels.label("candidate_labels"), trial.c.repeat, trial.c.repeat_labels,
                training.c.fingerprint,
            )
            .join(training, training.c.id == trial.c.training_id)
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
            return [Place(**row._mapping) for row in connection.execute(query)]

    def extend_sweep(self, fence: int, sweep: int, wider: Extension) -> None:
        """Write the added rows and let the sweep go on; finished trainings are reused at once."""
        table = schema.sweep
        with self._database.writing(fence) as connection:
            row = connection.execute(sa.select(table.c.uid, table.c.state).where(table.c.id == sweep)).one()
            insert(
                connection, cell,
                ({"sweep_id": sweep, "cell": one.index, "labels": dict(one.labels)} for one in wider.cells),
            )  # fmt: skip
            insert(connection, candidate, _candidates(sweep, wider.candidates))
            position = sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
            first = connection.execute(position.where(trial.c.sweep_id == sweep)).scalar_one()
            fresh = bool(wider.spec.get("fresh"))
            TrialRows(self._database, connection, sweep, uuid.UUID(row.uid), fresh, first).write(wider.trials)
            touched = sorted({one.cell for one in wider.trials})
            connection.execute(
                sa.update(cell)
                .where(cell.c.sweep_id == sweep, cell.c.cell.in_(touched))
                .values(summary=None, settled=None)
            )
            values: dict[str, Any] = {"text": wider.text, "spec": dict(wider.spec), "total": wider.total}
            if row.state in before(SWEEP_STEPS, SweepState.RUNNING) - {SweepState.PAUSED}:
                values |= {"state": SweepState.RUNNING, "ended": None, "error": None}
            connection.execute(sa.update(table).where(table.c.id == sweep).values(**values))
            for index in touched:
                mark(self._database, connection, "cell", sweep, index)
            mark(self._database, connection, "sweep", sweep, sweep)


def _candidates(sweep: int, added: Iterable[Candidate]) -> Iterable[dict[str, Any]]:
    return ({"sweep_id": sweep, "cell": one.cell, "candidate": one.index, "labels": dict(one.labels)} for one in added)
