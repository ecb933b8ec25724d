"""Starting a process on demand: a client writes to a file that the process's supervisor watches."""

from contextlib import suppress
from pathlib import Path


class Doorbell:
    """A file next to the socket of the process. It exists while a supervisor watches it."""

    def __init__(self, socket: Path) -> None:
        self._file = socket.with_name(f"{socket.name}.bell")

    def listen(self) -> None:
        """Create the file, for this account only, or reset it."""
        self._file.touch(0o600)
        self._file.write_bytes(b"")

    def ring(self) -> bool:
        """Ask for the process; returns False if no supervisor watches the file."""
        try:
            with self._file.open("r+b") as file:
                file.write(b"1")
        except OSError:
            return False
        return True

    def has_rung(self) -> bool:
        """Whether `ring` was called since `listen`."""
        with suppress(OSError):
            return self._file.stat().st_size > 0
        return False

    def remove(self) -> None:
        """Delete the file, so that nobody can ask for the process."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
