"""Extending a sweep: the places that it has, and the rows of those that are added."""

import uuid
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.schema import candidate, cell, trial
from orchestrator.record.writes.dirty_flags import mark
from orchestrator.record.writes.leases import extend
from orchestrator.record.writes.pruning import prune_added
from orchestrator.record.writes.starting import TrialRows, insert
from orchestrator.views.extension import Extension
from orchestrator.views.lifecycle import SWEEP_ENDED, SWEEP_STEPS, SweepState, before
from orchestrator.views.planned import Candidate


class Extending(Access):
    """What makes a sweep grow."""

    def extend_sweep(self, fence: int, sweep: int, wider: Extension) -> None:
        """Write the added rows and let the sweep go on; finished trainings are reused at once."""
        table = schema.sweep
        with self._database.writing(fence) as connection:
            require_sweep(connection, sweep)
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
            prune_added(connection, sweep, first)
            touched = sorted({one.cell for one in wider.trials})
            connection.execute(
                sa.update(cell)
                .where(cell.c.sweep_id == sweep, cell.c.cell.in_(touched))
                .values(summary=None, settled=None)
            )
            values: dict[str, Any] = {"text": wider.text, "spec": dict(wider.spec), "total": wider.total}
            if "slot" in wider.spec:  # which holds for all that waits and has no slot of its own
                values["slot"] = wider.spec["slot"]
            if not wider.spec.get("slots"):  # it takes back what some trials had of their own
                connection.execute(
                    sa.update(trial).where(trial.c.sweep_id == sweep, trial.c.slot.is_not(None)).values(slot=None)
                )
            if row.state in before(SWEEP_STEPS, SweepState.RUNNING) & SWEEP_ENDED:
                values |= {"state": SweepState.RUNNING, "ended": None, "error": None}
            connection.execute(sa.update(table).where(table.c.id == sweep).values(**values))
            for index in touched:
                mark(self._database, connection, "cell", sweep, index)
            mark(self._database, connection, "sweep", sweep, sweep)
            extend(connection)


def _candidates(sweep: int, added: Iterable[Candidate]) -> Iterable[dict[str, Any]]:
    return ({"sweep_id": sweep, "cell": one.cell, "candidate": one.index, "labels": dict(one.labels)} for one in added)
