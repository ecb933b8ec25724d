"""Where a sweep stands in the queue: paused or not, and its priority."""

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.writes.dirty_flags import mark
from orchestrator.views.lifecycle import SWEEP_STEPS, SweepState, before


class Queueing(Access):
    """What changes whose turn it is."""

    def pause(self, fence: int, sweep: int) -> bool:
        """Start nothing more of a running sweep; what trains goes on to its end. Whether that changed anything."""
        return self._turn(fence, sweep, SweepState.RUNNING, SweepState.PAUSED)

    def resume(self, fence: int, sweep: int) -> bool:
        """Let a paused sweep take its turn again; whether that changed anything."""
        return self._turn(fence, sweep, SweepState.PAUSED, SweepState.RUNNING)

    def prioritize(self, fence: int, sweep: int, priority: int) -> None:
        """Set a sweep's priority; of what already trains nothing is stopped for it."""
        table = schema.sweep
        with self._database.writing(fence) as connection:
            require_sweep(connection, sweep)
            connection.execute(sa.update(table).where(table.c.id == sweep).values(priority=priority))
            mark(self._database, connection, "sweep", sweep, sweep)

    def _turn(self, fence: int, sweep: int, old: SweepState, new: SweepState) -> bool:
        if old not in before(SWEEP_STEPS, new):
            raise ValueError(f"{new} does not follow {old}")
        table = schema.sweep
        with self._database.writing(fence) as connection:
            require_sweep(connection, sweep)
            moving = sa.update(table).where(table.c.id == sweep, table.c.state == old)
            moved = connection.execute(moving.values(state=new)).rowcount == 1
            if moved:
                mark(self._database, connection, "sweep", sweep, sweep)
            return moved
