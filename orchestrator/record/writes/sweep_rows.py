"""The rows of a sweep that is being expanded: cells, candidates and trials, a piece of them at a time."""

import uuid
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from orchestrator.record.schema import candidate, cell, trial
from orchestrator.record.writes.trial_rows import TrialRows, insert
from orchestrator.views.planned import Candidate, Cell, PlannedTrial


class SweepRows:
    """Appends to what is written of a sweep; a `fresh` one shares no training but with itself."""

    def __init__(self, connection: sa.Connection, sweep: int, uid: uuid.UUID, fresh: bool) -> None:
        self._connection, self._sweep, self._uid, self._fresh = connection, sweep, uid, fresh

    def write(self, cells: Iterable[Cell], candidates: Sequence[Candidate], trials: Iterable[PlannedTrial]) -> None:
        """Write them in their order, which is that of the plan.

        Cells are open where the sweep has no candidates at all: a search adds them later.
        """
        sweep, position = self._sweep, sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
        first = self._connection.execute(position.where(trial.c.sweep_id == sweep)).scalar_one()
        later = first == 0 and not candidates
        insert(
            self._connection, cell,
            ({"sweep_id": sweep, "cell": one.index, "labels": dict(one.labels), "open": later} for one in cells),
        )  # fmt: skip
        insert(self._connection, candidate, rows_of(sweep, candidates))
        TrialRows(self._connection, sweep, self._uid, self._fresh, first, whole=True).write(trials)


def rows_of(sweep: int, added: Iterable[Candidate]) -> Iterable[dict[str, object]]:
    """Those of candidates."""
    return ({"sweep_id": sweep, "cell": one.cell, "candidate": one.index, "labels": dict(one.labels)} for one in added)
