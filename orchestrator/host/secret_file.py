"""A secret in a file that somebody may exchange while we run: what it says now, or said last while it says nothing."""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from orchestrator.views.errors import MetricsweepError

log = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024
Secret = TypeVar("Secret")
LEAST_HIDDEN: Final = 4
"""Characters of what logs leave out: less would leave holes in words."""
_State = tuple[int, int, int]
_seen: Final[list[str]] = []
_files: Final[dict[tuple[str, Path, Callable[[str], Any]], "SecretFile[Any]"]] = {}


class SecretFile(Generic[Secret]):
    """Looks at each use whether the file is another one; `parse` refuses a text with a ValueError.

    Orchestrators exchange secrets by renaming a link, editors by renaming a file, and some write in place: so what is
    gone, half written or wrong is told once in the log, and the secret of before goes on counting.
    """

    def __init__(self, variable: str, path: Path, parse: Callable[[str], Secret]) -> None:
        self._variable, self._path, self._parse = variable, path, parse
        self._lock = threading.Lock()
        self._state: _State | None = None
        self._known: list[Secret] = []  # of which the last one counts

    def value(self) -> Secret:
        """The secret in force; raises MetricsweepError where there never was one."""
        with self._lock:
            try:
                found = self._path.stat()
                state = (found.st_ino, found.st_mtime_ns, found.st_size)
            except OSError as error:
                self._missed(None, error)
            else:
                if state != self._state or not self._known:
                    self._read(state)
            return self._known[-1]

    def _read(self, state: _State) -> None:
        try:
            with self._path.open("rb") as file:
                text = file.read(MOST_BYTES + 1)
            if len(text) > MOST_BYTES:
                raise ValueError(f"holds more than {MOST_BYTES} bytes")
            said = text.decode("ascii").strip()
            self._known = [self._parse(said)]
            _remember(said)
            if self._state is not None:
                log.info("%s  the secret is another one now", self._variable)
            self._state = state
        except (OSError, ValueError) as error:
            self._missed(state, error)

    def _missed(self, state: _State | None, error: OSError | ValueError) -> None:
        said = error.strerror if isinstance(error, OSError) else _said(error)
        if not self._known:
            raise MetricsweepError(f"{self._variable}  {self._path}: {said}") from None
        if state != self._state:
            log.warning("%s  %s: %s; the secret of before stays in force", self._variable, self._path, said)
        self._state = state


def seen() -> Sequence[str]:
    """What was ever read of such files, the longest first: no log may show it, also once it has been replaced."""
    return tuple(_seen)


def _remember(text: str) -> None:
    parts = {part for part in text.split() if len(part) >= LEAST_HIDDEN}
    _seen[:] = sorted({*_seen, *parts}, key=len, reverse=True)


def _said(error: ValueError) -> str:
    return "holds more than ASCII" if isinstance(error, UnicodeDecodeError) else str(error)


def secret_file(variable: str, path: Path, parse: Callable[[str], Secret]) -> SecretFile[Secret]:
    """That of a path, the same one each time: what it knows outlives who asks."""
    key = (variable, path, parse)
    if key not in _files:
        _files[key] = SecretFile(variable, path, parse)
    found: SecretFile[Secret] = _files[key]
    return found


def one_line(text: str) -> str:
    """A secret that is one line, such as a password."""
    if not text:
        raise ValueError("is empty")
    if not text.isprintable():
        raise ValueError("holds more than one line of visible characters")
    return text
