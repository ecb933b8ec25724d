"""The quotas: what may not be begun since somebody has as much as they may have, and what is said of it."""

import time
from collections.abc import Callable
from typing import Final

from orchestrator.record.capacity import Counted
from orchestrator.record.store import Store
from orchestrator.views.accounts import UNLIMITED, QuotaLimits

QUOTA_SECONDS: Final = 5.0
"""How often hours are counted anew while nothing else happens, or after twenty times as long as counting takes."""
REST_TIMES: Final = 20.0
WAIT: Final = "its trials wait until hours are free again, or an administrator raises the quota"


class Quotas:
    """The conductor's view of them, some seconds old at most."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._now = store, now
        self._next = float("-inf")
        self._counted: Counted | None = None
        self.limits: QuotaLimits = UNLIMITED
        self.notices: dict[int, list[str]] = {}
        """Why trials wait, by sweep; of slots nothing is said, since another training ends soon."""

    def look(self, *, anew: bool = False) -> None:
        """Count; `anew`: trials were added or changed, by which no hours are used yet."""
        began = self._now()
        rests = began < self._next
        if rests and not anew:
            return
        state = self._store.quotas.state(self._counted if rests else None)
        self._counted = state.counted
        if not rests:
            self._next = self._now() + max(QUOTA_SECONDS, REST_TIMES * (self._now() - began))
        self.limits = state.limits
        self.notices = {
            number: [f"{reason}; {WAIT}" for reason in reasons]
            for number, reasons in state.reasons.items()
            if self._store.claims.waits_of(number, state.limits.spent[number])
        }
