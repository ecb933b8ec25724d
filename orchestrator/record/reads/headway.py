"""How far a sweep is: the steps that are done, and the time that is left where it goes on."""

from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.cost.time_left import TimeLeft
from orchestrator.record.reads import recent
from orchestrator.record.reads.pace import Pace
from orchestrator.record.reads.recent import Recent
from orchestrator.record.reads.steps import StepCounter, counted, tally
from orchestrator.views.lifecycle import SWEEP_ENDED, SweepState
from orchestrator.views.sweeps import Counts, StepCount

_KEPT: Final = 256  # sweeps


class Headway(NamedTuple):
    """How far one is."""

    steps: StepCount
    left: TimeLeft | None


class Headways:
    """Those of a database; safe to share between threads."""

    def __init__(self) -> None:
        self._steps, self._pace = StepCounter(), Pace()
        self._recent: Recent[tuple[int, str, int], Headway] = Recent(_KEPT)

    def of(self, connection: sa.Connection, row: sa.Row[Any], counts: Counts) -> Headway:
        """That of a sweep, whose `row` has its id, state, total and spec; of a large one that goes on a recent one."""
        if row.state in SWEEP_ENDED:
            return Headway(self._steps.of_ended(connection, row.id, row.total, counts), None)
        if row.total < recent.LARGE:
            return self._reckoned(connection, row)
        return self._recent.get((row.id, row.state, row.total), lambda: self._reckoned(connection, row))

    def _reckoned(self, connection: sa.Connection, row: sa.Row[Any]) -> Headway:
        steps = tally(connection, row.id)
        left = None
        if row.state == SweepState.RUNNING:  # of a paused one nobody knows when the others will go on
            left = self._pace.left(connection, row.id, steps, row.total, prunes=bool(row.spec.get("prune")))
        return Headway(counted(steps, row.total), left)
