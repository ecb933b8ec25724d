"""How a process on demand is asked to start: somebody writes to a file that its supervisor looks at."""

from contextlib import suppress
from pathlib import Path


class Doorbell:
    """A file next to the socket of the process. It exists while a supervisor watches it."""

    def __init__(self, socket: Path) -> None:
        self._file = socket.with_name(f"{socket.name}.bell")

    def listen(self) -> None:
        """Create the file, for this account alone, or forget that the bell was rung."""
        self._file.touch(0o600)
        self._file.write_bytes(b"")

    def ring(self) -> bool:
        """Ask for the process; False where no supervisor watches the file."""
        try:
            with self._file.open("r+b") as file:
                file.write(b"1")
        except OSError:
            return False
        return True

    def has_rung(self) -> bool:
        """Whether somebody has rung since `listen`."""
        with suppress(OSError):
            return self._file.stat().st_size > 0
        return False

    def remove(self) -> None:
        """Delete the file: from now on nobody can ask."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
