"""The logs of jobs: those of jobs that are done are kept for a while, and no log grows without end."""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

KEPT: Final = 200
"""Logs of jobs that are done, the latest ones."""
MOST_BYTES: Final = 64 * 2**20
"""Of one log; it then begins anew, as whoever writes it appends."""
LOOK_SECONDS: Final = 60.0


class JobLogs:
    """A folder in which each job of an array has its log: 12_3.log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._looked = float("-inf")
        folder.mkdir(mode=0o700, exist_ok=True)

    def tidy(self, known: Collection[str]) -> None:
        """Remove what is too much, where it is time to; `known` are the jobs that Slurm has not done with."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        with suppress(OSError):
            done = sorted(one for one in self._logs() if one[1].stem not in known)
            for _, path in done[: max(0, len(done) - KEPT)]:
                path.unlink(missing_ok=True)

    def _logs(self) -> Iterator[tuple[float, Path]]:
        for path in self.folder.glob("*.log"):
            with suppress(OSError):
                if (found := path.lstat()).st_size > MOST_BYTES:
                    os.truncate(path, 0)
                yield found.st_mtime, path
