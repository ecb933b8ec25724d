"""What the slots say of themselves: asked at every look, and taken at the next, so that nobody waits for an answer."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError

from orchestrator.run.ray.slot_handle import HeldSlot
from orchestrator.views.cluster import ProcessUsage, SlotReport


@dataclass(slots=True)
class _Asked:
    """One slot's last answer, and the one that is awaited."""

    awaited: Any = None
    at: float = 0.0
    told: Mapping[str, Any] = field(default_factory=dict)
    lag: float | None = None


class SlotReports:
    """An answer that does not come, or an error in place of it, leaves what was said last: others find dead slots."""

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}

    def look(self, slots: Iterable[HeldSlot], seen: Mapping[str, int]) -> Sequence[SlotReport]:
        """The slots with what they said last; `seen` is by attempt how many of its messages are recorded."""
        slots = list(slots)
        self._asked = {slot.name: self._asked.get(slot.name, _Asked()) for slot in slots}
        return [self._looked(slot, self._asked[slot.name], seen) for slot in slots]

    def _looked(self, slot: HeldSlot, asked: _Asked, seen: Mapping[str, int]) -> SlotReport:
        if asked.awaited is not None and ray.wait([asked.awaited], timeout=0)[0]:
            try:
                asked.told = ray.get(asked.awaited)
                asked.lag = _lag(asked.told, seen, time.monotonic() - asked.at)
            except RayError:
                asked.lag = None
            asked.awaited = None
        if asked.awaited is None and slot.begun:
            asked.awaited, asked.at = slot.actor.describe.remote(), time.monotonic()
        usage = asked.told.get("usage")
        return SlotReport(
            name=slot.name,
            node=slot.node,
            host=asked.told.get("host", ""),
            resources=slot.shape.bundle,
            attempt=slot.attempt,
            usage=None if usage is None else ProcessUsage.model_validate(usage),
            lag=asked.lag if slot.attempt is not None else None,
        )


def _lag(told: Mapping[str, Any], seen: Mapping[str, int], since: float) -> float | None:
    """How long the oldest message that is not recorded has waited; none: all are."""
    recorded, ages = seen.get(told["attempt"] or ""), told.get("ages") or []
    if recorded is None or recorded >= told.get("said", 0):
        return None
    first = told["said"] - len(ages)  # messages count from 1, and the first of `ages` is number `first` + 1
    return float(ages[max(0, recorded - first)]) + since
