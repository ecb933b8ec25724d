"""What is left to train of the sweeps that go on, counted anew once in a while."""

import time
from collections.abc import Callable
from typing import Final

from orchestrator.cost.view import Cost
from orchestrator.plan import grid
from orchestrator.plan.needs import Contents
from orchestrator.plan.validated import Checked
from orchestrator.record.store import Store
from orchestrator.service.forecast import forecast
from orchestrator.spec.spec import Spec
from orchestrator.views.callers import caller
from orchestrator.views.lifecycle import SWEEP_ENDED, SweepState
from orchestrator.views.sweeps import SweepView
from workers.catalog import Catalog

MOST_TRIALS: Final = 2_000
"""Of larger sweeps it is not counted: that would take seconds."""
SECONDS: Final = 60.0
"""How old it may be."""
_KEPT: Final = 256  # sweeps


class Outlook:
    """Remembers what it counted, since pages are drawn every few seconds."""

    def __init__(self, store: Store, catalog: Catalog, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._catalog, self._now = store, catalog, now
        self._counted: dict[tuple[int, str], tuple[float, int, Cost | None]] = {}

    def left(self, sweep: SweepView) -> Cost | None:
        """The cost of what is left; none of a sweep that has ended, of a large one, and where it cannot be known.

        The last is so of a search that has begun, of one that trains everything anew, and of a spec of another release.
        """
        if sweep.state in SWEEP_ENDED or sweep.total > MOST_TRIALS:
            return None
        key = sweep.id, caller().key  # what has trained already is counted as far as it is seen
        at, total, cost = self._counted.get(key, (float("-inf"), -1, None))
        if self._now() - at > SECONDS or total != sweep.total:  # it may have been extended
            cost = self._count(sweep)
            self._counted.pop(key, None)
            self._counted[key] = (self._now(), sweep.total, cost)
            while len(self._counted) > _KEPT:
                self._counted.pop(next(iter(self._counted)), None)
        return cost

    def _count(self, sweep: SweepView) -> Cost | None:
        try:
            spec = Spec.model_validate(sweep.spec)
            if (spec.search.adaptive or spec.fresh) and sweep.state is not SweepState.QUEUED:
                return None
            contents = Contents.of(self._store.data.planned_content(sweep.id))
            return forecast(
                Checked(spec, grid.expand(spec, self._catalog, contents)), self._store, self._catalog, sweep.project
            ).cost
        except (ValueError, LookupError):  # of another release, or of own parts that are gone
            return None
