"""The growth of a slot: what its process holds after each training, and when a new process would hold less."""

import gc
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import psutil

MEMORY: Final = "memory"
GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much more than after its second training a slot may hold: the first two load what all the others need."""

    times: float = 1.5
    least: int = GIB // 2
    """Bytes; another data set in memory is no leak."""
    seconds: float = 10.0
    """How long a process goes on after a look at what it holds: that takes a tenth of a second, as long as a step."""

    def exceeded(self, now: int, second: int) -> bool:
        """Whether `now` is too much where `second` was held after the second training; both in bytes."""
        return now > max(self.times * second, second + self.least)


class MemoryGrowth:
    """Follows one process over its trainings."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._trainings, self._looked = 0, float("-inf")
        self._first: Mapping[str, int] = {}
        self._second: Mapping[str, int] = {}

    def ended(self) -> None:
        """One more training ended in the process."""
        self._trainings += 1

    def due(self, allowed: Allowance) -> bool:
        """Whether to look at what is held now: the first two are what all others are held against, and the next may be
        too short for a look after each."""
        return self._trainings <= 2 or self._now() - self._looked >= allowed.seconds

    def note(self, held: Mapping[str, int], allowed: Allowance, declared: int | None = None) -> str | None:
        """Take the bytes held after the last training, by kind; why the process is to be replaced, none: it is not.

        `declared` is the memory that its slot asked for. Above it a process is only replaced where a new one held less.
        """
        self._looked = self._now()
        if self._trainings == 1:
            self._first = held
            return None
        if self._trainings == 2:
            self._second = held
        for kind, now in held.items():
            if allowed.exceeded(now, self._second.get(kind, 0)):
                before = f"{self._second.get(kind, 0) / GIB:.2f} GiB after its second"
                return f"it holds {now / GIB:.2f} GiB of {kind} after {self._trainings} trainings, {before}"
        if declared is not None and held[MEMORY] > declared >= self._first[MEMORY]:
            asked = f"its slot asked for {declared / GIB:.2f}"
            return f"it holds {held[MEMORY] / GIB:.2f} GiB of memory after {self._trainings} trainings, {asked}"
        return None


def weighed(train: str) -> dict[str, int]:
    """Let go of what trainings that ended have left in this process; gives the bytes that it holds then, by kind.

    Raises what `release` raises.
    """
    more = release(train)
    return {MEMORY: own_memory(), **more}


def release(train: str) -> Mapping[str, int]:
    """Let go of what trainings that ended have left in this process; gives what their module says that it holds.

    Where the module of the training function `train` has a function `release`, it does so for what only it knows of,
    such as a GPU's memory, and tells what is held of that. Raises what that raises.
    """
    gc.collect()  # a network and its optimizer refer to one another; left to itself Python looks at them hours later
    theirs = getattr(sys.modules.get(train.partition(":")[0]), "release", None)
    return cast("Callable[[], Mapping[str, int]]", theirs)() if callable(theirs) else {}


def own_memory() -> int:
    """The bytes of this process alone: not those of files, such as decoded images, that others map too.

    Counted page by page: the sums that Linux keeps (RSS) are wrong by a hundred megabytes where there are many cores.
    """
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))
    except (OSError, StopIteration):
        return int(psutil.Process().memory_full_info().uss)
