"""Deliveries: of what a webhook is told, and how it stands with what it did not take yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class DeliveryEvent(StrEnum):
    """What is told."""

    FINISHED = "sweep.finished"
    FAILED = "sweep.failed"
    CANCELLED = "sweep.cancelled"
    STALLED = "sweep.stalled"
    """A training of it was silent for so long that it was stopped (`slot.stall_minutes`)."""
    HINDERED = "sweep.hindered"
    """Trials of it wait for a node that can hold their slots, or for data that no machine has."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that is still to be told."""

    id: int
    uid: str
    event: DeliveryEvent
    sweep: int
    said: Mapping[str, Any]
    at: datetime
    tries: int  # that were in vain
    age: float  # seconds since it was noted, by the database's clock


@dataclass(frozen=True, slots=True)
class DeliveryBacklog:
    """What the webhook was not told."""

    waiting: int
    seconds: float  # since when the oldest of them waits
    failing: int  # of which the last try was in vain
    given_up: int  # within the days for which these are kept
    error: str | None = None  # of the last one that failed or was given up
