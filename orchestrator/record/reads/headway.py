"""How far a sweep is: the steps that are done, and the time that is left where it goes on."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.cost.time_left import TimeLeft
from orchestrator.record.reads.pace import Pace
from orchestrator.record.reads.steps import StepCounter, counted, tally
from orchestrator.views.lifecycle import SWEEP_ENDED, SweepState
from orchestrator.views.sweeps import Counts, StepCount

LARGE: Final = 1_000
"""Trials from which on it is not reckoned anew for each who asks while the sweep goes on."""
SHARE: Final = 20
"""That of a large one is as old, at most, as so many times what it takes to reckon: a twentieth of a core."""
_KEPT: Final = 256  # sweeps


class Headway(NamedTuple):
    """How far one is."""

    steps: StepCount
    left: TimeLeft | None


class Headways:
    """Those of a database; safe to share between threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._steps, self._pace = StepCounter(), Pace()
        self._now = now
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str, int], tuple[float, Headway]] = OrderedDict()
        self._reckoning: set[tuple[int, str, int]] = set()

    def of(self, connection: sa.Connection, row: sa.Row[Any], counts: Counts) -> Headway:
        """That of a sweep, whose `row` has its id, state, total and spec."""
        if row.state in SWEEP_ENDED:
            return Headway(self._steps.of_ended(connection, row.id, row.total, counts), None)
        if row.total < LARGE:
            return self._reckoned(connection, row)
        key = (row.id, row.state, row.total)
        with self._lock:
            until, known = self._kept.get(key, (0.0, None))
            if known is not None and (self._now() < until or key in self._reckoning):
                return known
            self._reckoning.add(key)
        try:
            began = self._now()
            reckoned = self._reckoned(connection, row)
            self._keep(key, self._now() - began, reckoned)
        finally:
            with self._lock:
                self._reckoning.discard(key)
        return reckoned

    def _keep(self, key: tuple[int, str, int], took: float, reckoned: Headway) -> None:
        with self._lock:
            self._kept[key] = self._now() + SHARE * took, reckoned
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def _reckoned(self, connection: sa.Connection, row: sa.Row[Any]) -> Headway:
        steps = tally(connection, row.id)
        left = None
        if (
            row.state == SweepState.RUNNING
        ):  # what trains in a paused one goes on, but nobody knows when the others will
            left = self._pace.left(connection, row.id, steps, row.total, prunes=bool(row.spec.get("prune")))
        return Headway(counted(steps, row.total), left)
