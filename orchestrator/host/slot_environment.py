"""The environment of the processes that train: their niceness, and how glibc keeps the memory that they free."""

from collections.abc import Mapping
from typing import Final

NICENESS: Final = "RAY_worker_niceness"
"""The variable by which Ray is told."""
MALLOC: Final[Mapping[str, str]] = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}
"""glibc keeps large freed blocks for the next step, in one heap; otherwise each step pays a page fault per 4 KiB."""
_DEFAULTS: Final = {
    # Ray's own 15 leaves a slot 3 % of a core on which another program computes; with 5 it has a quarter, and pages and
    # the conductor, which need little, still come first.
    NICENESS: "5",
    **MALLOC,
}


def for_slots(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that trains or starts such processes; what `given` sets stays as it is."""
    return {name: given.get(name, value) for name, value in _DEFAULTS.items()}
