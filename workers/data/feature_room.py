"""The room that all features of a machine may take: the longest unused ones make way for new ones."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from workers.data.disk_limit import GB, disk_limit

SETTING: Final = "METRICSWEEP_FEATURES_GB"
"""The environment variable that says how many gigabytes all features of a machine may take together."""
USUAL: Final = 32.0
"""Where it says nothing."""


def limit() -> float:
    """The bytes that all features of a machine may take; raises ValueError."""
    return disk_limit(SETTING, USUAL, "above 0", lambda gigabytes: gigabytes > 0)


def make_room(aside: Path, size: int, name: str) -> None:
    """Remove what killed processes left half-written, and the longest unused features, until `size` more bytes fit.

    A training that has them open goes on with them. Raises ValueError where they never fit.
    """
    most = limit()
    if size > most:
        raise ValueError(
            f"backbone.of: {name} would take {size / GB:.1f} GB, and {SETTING} allows {most / GB:g}; raise it, or "
            "train the backbone itself with `backbone_rate: 0`"
        )
    whole: list[tuple[int, int, Path]] = []
    for folder in aside.parent.iterdir():
        if folder.is_dir() and folder.name.startswith(".") and folder != aside:
            _remove_abandoned(folder)
        elif folder.is_dir() and not folder.name.startswith("."):
            with suppress(OSError):
                whole.append((folder.stat().st_mtime_ns, (folder / "features").stat().st_size, folder))
    taken = sum(held for _, held, _ in whole) + size
    for _, held, folder in sorted(whole):
        if taken <= most:
            break
        shutil.rmtree(folder, ignore_errors=True)
        taken -= held


def _remove_abandoned(aside: Path) -> None:
    with suppress(Timeout), FileLock(f"{aside.with_name(aside.name[1:])}.lock", timeout=0):
        shutil.rmtree(aside, ignore_errors=True)
