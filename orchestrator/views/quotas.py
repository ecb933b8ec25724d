"""Quotas: how many slots at once and how many hours a user or a project may have, and what is used of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import Field

from orchestrator.views.pages import View

MOST_HOURS: Final = 1e9
QuotaKind = Literal["user", "project"]


class Quota(View):
    """What a user or a project may have; none: no limit."""

    slots: int | None = Field(default=None, ge=1, le=1_000_000)
    """Slots at once."""
    gpu_hours: float | None = Field(default=None, ge=0, le=MOST_HOURS, allow_inf_nan=False)
    """Hours of GPUs: half of one for two hours is one."""
    cpu_hours: float | None = Field(default=None, ge=0, le=MOST_HOURS, allow_inf_nan=False)
    """Hours of CPU cores, of trainings that hold no GPU."""
    days: int | None = Field(default=None, ge=1, le=36_500)
    """The hours are those of so many last days; none: of all that was ever trained."""

    @property
    def lacking(self) -> str | None:
        """What a quota lacks to say anything; none: nothing."""
        if self.days is None or (self.gpu_hours, self.cpu_hours) != (None, None):
            return None
        return "days says in which time hours are counted; gpu_hours or cpu_hours is missing"

    @property
    def within(self) -> str:
        """The time that hours are counted in, as it is said behind them."""
        return "" if self.days is None else f" of {self.days} days" if self.days != 1 else " of a day"


class QuotaUse(Quota):
    """A quota, and what is used of it."""

    kind: QuotaKind
    name: str
    used_slots: int = 0
    used_gpu_hours: float = 0.0
    used_cpu_hours: float = 0.0

    @property
    def limited(self) -> bool:
        """Whether there is a quota at all."""
        return (self.slots, self.gpu_hours, self.cpu_hours) != (None, None, None)

    @property
    def amounts(self) -> list[tuple[str, float, float | None]]:
        """What is used of what, and of how much: slots, then hours of GPUs and of CPUs."""
        return [
            ("slots", self.used_slots, self.slots),
            (f"GPU hours{self.within}", self.used_gpu_hours, self.gpu_hours),
            (f"CPU hours{self.within}", self.used_cpu_hours, self.cpu_hours),
        ]


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """What quotas keep from being given out next."""

    users: Mapping[int, int] = field(default_factory=dict)
    """By number of a user, the most slots at once."""
    projects: Mapping[int, int] = field(default_factory=dict)
    """The same by number of a project."""
    spent: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """By sweep, the slots (their JSON as the database holds it) of the kind whose hours are used up."""


UNLIMITED: Final = QuotaLimits()
