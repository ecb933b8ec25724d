"""Private files and folders, and secrets in files that may change while we run."""

import logging
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from orchestrator.host.disk import replace_file
from orchestrator.views.errors import MetricsweepError

MASK: Final = 0o077
"""The umask under which everything of an installation is written."""


def write_for_us_alone() -> None:
    """Have this process, and what it starts, write nothing that another account can read."""
    os.umask(MASK)


def own_folder(folder: Path) -> bool:
    """Make a folder that only this user can enter, or close one; True where it had been open to others.

    Raises MetricsweepError where it, or the link at its place, belongs to somebody else: whoever owns a folder may
    exchange everything in it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if {folder.lstat().st_uid, folder.stat().st_uid} != {os.getuid()}:
        raise MetricsweepError(f"{folder} belongs to somebody else; name another folder, or remove it")
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode != 0o700:  # on a read-only disk even a change to the same mode is refused
        folder.chmod(0o700)
    return bool(mode & MASK)


def close_files(files: Iterable[Path]) -> list[Path]:
    """Close those of our files that others could read or write; returns them. Links are not followed."""
    closed = []
    for file in files:
        with suppress(FileNotFoundError):  # a log that is rotated away, a database's journal that ends
            found = file.lstat()
            if found.st_mode & MASK and found.st_uid == os.getuid() and not file.is_symlink():
                file.chmod(found.st_mode & 0o700)
                closed.append(file)
    return closed


def own_secret(file: Path) -> str:
    """The random text in a file that only this user can read; made on first use, and then kept.

    Raises MetricsweepError where the file belongs to somebody else or holds nothing.
    """
    if not file.exists():
        aside = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
                made.write(secrets.token_hex(32))
            with suppress(FileExistsError):  # another process was first, and its secret stands
                os.link(aside, file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(file)) from error
        finally:
            aside.unlink(missing_ok=True)
    return known_secret(file)


def known_secret(file: Path) -> str:
    """The secret in a file that exists; raises FileNotFoundError, and MetricsweepError as `own_secret`."""
    if file.stat().st_uid != os.getuid():
        raise MetricsweepError(f"{file} belongs to somebody else; remove it")
    close_files([file])
    found = file.read_text().strip()
    if not found:
        raise MetricsweepError(f"{file} is empty; remove it, and the next start makes another")
    return found


def own_text(file: Path, text: str) -> None:
    """Replace a file that only this user can read; after an error the old one is as it was. Raises OSError."""
    replace_file(file, text.encode(), mode=0o600)


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
