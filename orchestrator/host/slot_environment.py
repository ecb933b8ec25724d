"""The environment of processes that train: their niceness, and how glibc keeps freed memory."""

from collections.abc import Mapping
from typing import Final

NICENESS: Final = "RAY_worker_niceness"  # the variable that Ray reads
MALLOC: Final[Mapping[str, str]] = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}
"""glibc keeps large freed blocks in one heap for the next step, instead of a page fault per 4 KiB in each step."""
_DEFAULTS: Final = {
    # With Ray's default of 15, a slot gets 3 % of a core on which another program computes; with 5 it gets a quarter.
    # Pages and the conductor, which need little, still come first.
    NICENESS: "5",
    **MALLOC,
}


def for_slots(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that trains or starts such processes; values in `given` stay."""
    return {name: given.get(name, value) for name, value in _DEFAULTS.items()}
