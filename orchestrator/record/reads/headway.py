"""How far a sweep is: the steps that are done, and the time that is left where it goes on."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.cost.time_left import TimeLeft
from orchestrator.host.cache import Cache
from orchestrator.record.database import Database
from orchestrator.record.reads.expansion import is_expanded
from orchestrator.record.reads.pace import Pace
from orchestrator.record.reads.steps import DONE, StepCounter, StepTally, counted, tallies
from orchestrator.views.states import SWEEP_ENDED, SweepState
from orchestrator.views.sweeps import Counts, StepCount

_KEPT: Final = 256  # sweeps
LARGE: Final = 1_000
"""Trials of a sweep from which on what is computed of all of them is expensive."""


class Headway(NamedTuple):
    """How far one is."""

    steps: StepCount
    left: TimeLeft | None


class Headways:
    """Those of a database; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._steps, self._pace = StepCounter(), Pace()
        self._cache: Cache[tuple[int, str, int], Headway] = Cache(_KEPT)

    def of(
        self, connection: sa.Connection, rows: Sequence[sa.Row[Any]], counts: Mapping[int, Counts]
    ) -> dict[int, Headway]:
        """By id those of sweeps, whose `rows` have their id, state, start, total and spec.

        Of a large one that goes on it is a recent one.
        """
        headways = {row.id: Headway(counted(StepTally(), row.total), None) for row in rows if not is_expanded(row)}
        rows = [row for row in rows if row.id not in headways]
        ended = {row.id for row in rows if row.state in SWEEP_ENDED}
        tallied = tallies(connection, [row.id for row in rows if row.id not in ended and row.total < LARGE])
        for row in rows:
            if row.id in ended:
                headways[row.id] = Headway(self._steps.of_ended(connection, row.id, row.total, counts[row.id]), None)
            elif row.id in tallied:
                headways[row.id] = self._reckoned(connection, row, tallied[row.id])
            else:
                headways[row.id] = self._recently(connection, row)
        return headways

    def _recently(self, connection: sa.Connection, row: sa.Row[Any]) -> Headway:
        def reckoned(connection: sa.Connection = connection) -> Headway:
            return self._reckoned(connection, row, tallies(connection, [row.id])[row.id])

        def beside() -> Headway:
            with self._database.reading() as own:
                return reckoned(own)

        return self._cache.get((row.id, row.state, row.total), reckoned, beside)

    def _reckoned(self, connection: sa.Connection, row: sa.Row[Any], steps: StepTally) -> Headway:
        left = None
        begun = any(kind in steps.kinds for kind in DONE)
        if row.state == SweepState.RUNNING and begun:  # of a paused one nobody knows when the others will go on
            left = self._pace.left(connection, row.id, steps, row.total, prunes=bool(row.spec.get("prune")))
        return Headway(counted(steps, row.total), left)
