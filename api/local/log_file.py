"""The log of a supervised process: it appends, its supervisor cuts."""

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from orchestrator.host.files import close_files, own_folder

LOG_BYTES: Final = 10_000_000
"""About a week of a busy service; what is longer is put aside while the process goes on writing."""
KEPT: Final = 2
"""How many logs that were put aside are kept, as `<name>.log.1`, the younger, and `<name>.log.2`."""


class LogFile:
    """A file that a process, and all that it starts, hold open for appending.

    It is cut in place: nobody has to open it anew, and no pipe breaks where the supervisor is killed. What is written
    between the copy and the cut, some lines in weeks, is lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._from = 0

    def begin(self, name: str) -> IO[bytes]:
        """The file opened for a new start of the process; the caller closes it. Raises OSError if it takes no line."""
        own_folder(self.path.parent)
        self.cut()
        log = open(self.path, "ab", buffering=0, opener=_ours)  # noqa: SIM115  the caller closes it
        try:
            log.write(f"--- {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {name} starts\n".encode())
            self._from = os.fstat(log.fileno()).st_size
        except OSError as error:
            log.close()
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        return log

    def cut(self) -> None:
        """Put aside what is in it where that is too long; on a disk that takes no change it stays as it is."""
        with suppress(OSError):
            if self.path.stat().st_size <= LOG_BYTES:
                return
            with suppress(OSError):  # a full disk: then only the cut helps
                for number in range(KEPT - 1, 0, -1):
                    if self._aside(number).exists():
                        self._aside(number).replace(self._aside(number + 1))
                shutil.copyfile(self.path, self._aside(1))
                close_files([self._aside(1)])
            os.truncate(self.path, 0)
            self._from = 0

    def has_said(self, text: str) -> bool:
        """Whether the process has written this since it started, as far as the log can be read."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(self._from)
            return text.encode() in log.read(LOG_BYTES)
        return False

    def last_lines(self, count: int) -> str:
        """The end of it."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(max(0, self.path.stat().st_size - 8_000))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
        return ""

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _ours(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
