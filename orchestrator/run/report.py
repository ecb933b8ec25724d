"""A report: what an engine hears of an attempt, for the dispatch."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """News of one attempt and of the slot that trains it."""

    attempt: str
    said: Sequence[bytes] = ()  # lines of its spool
    host: str | None = None
    worn: str | None = None  # why the slot is to be replaced
    lost: str | None = None  # why nothing more will be heard of it
