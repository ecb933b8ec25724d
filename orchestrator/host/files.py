"""Private files and folders, and secrets in files that may change at any time."""

import logging
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from orchestrator.views.errors import MetricsweepError

MASK: Final = 0o077  # the umask for all files of an installation


def restrict_new_files() -> None:
    """Make the files of this process and its children only readable by this user."""
    os.umask(MASK)


def own_folder(folder: Path) -> bool:
    """Make a folder, and make it accessible to this user only; returns whether it was accessible to others.

    Raises MetricsweepError if the folder, or a link at its place, belongs to another user, who may replace its files.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if {folder.lstat().st_uid, folder.stat().st_uid} != {os.getuid()}:
        raise MetricsweepError(f"{folder} belongs to another user; name another folder, or remove it")
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode != 0o700:  # a read-only disk refuses even a change to the same mode
        folder.chmod(0o700)
    return bool(mode & MASK)


def close_files(files: Iterable[Path]) -> list[Path]:
    """Make files of this user inaccessible to others; returns those that were accessible. Skips links."""
    closed = []
    for file in files:
        with suppress(FileNotFoundError):  # such as a rotated log or the journal of a database
            found = file.lstat()
            if found.st_mode & MASK and found.st_uid == os.getuid() and not file.is_symlink():
                file.chmod(found.st_mode & 0o700)
                closed.append(file)
    return closed


def own_secret(file: Path) -> str:
    """The random text in a private file, which is made on first use.

    Raises MetricsweepError if the file is empty or belongs to another user.
    """
    if not file.exists():
        aside = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
                made.write(secrets.token_hex(32))
            with suppress(FileExistsError):  # another process was faster, and its secret stays
                os.link(aside, file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(file)) from error
        finally:
            aside.unlink(missing_ok=True)
    return known_secret(file)


def known_secret(file: Path) -> str:
    """The secret in an existing file; raises FileNotFoundError, and MetricsweepError as `own_secret` does."""
    if file.stat().st_uid != os.getuid():
        raise MetricsweepError(f"{file} belongs to another user; remove it")
    close_files([file])
    found = file.read_text().strip()
    if not found:
        raise MetricsweepError(f"{file} is empty; remove it, and the next start makes another")
    return found


log = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024
Secret = TypeVar("Secret")
_LEAST_HIDDEN: Final = 4  # characters of a text that logs hide; hiding shorter texts would make logs unreadable
_State = tuple[int, int, int]
_known_secrets: Final[list[str]] = []
_files: Final[dict[tuple[str, Path, Callable[[str], Any]], "SecretFile[Any]"]] = {}


class SecretFile(Generic[Secret]):
    """A secret in a file, which is read again when the file changes; `parse` raises ValueError for an invalid text.

    A file may be missing or incomplete while it is replaced. That is logged once, and the last secret stays valid.
    """

    def __init__(self, variable: str, path: Path, parse: Callable[[str], Secret]) -> None:
        self._variable, self._path, self._parse = variable, path, parse
        self._lock = threading.Lock()
        self._state: _State | None = None
        self._known: list[Secret] = []  # the last secret, if there was one

    def value(self) -> Secret:
        """The present secret of the file; raises MetricsweepError if there never was a valid one."""
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
            secret = text.decode("ascii").strip()
            self._known = [self._parse(secret)]
            hidden = {part for part in secret.split() if len(part) >= _LEAST_HIDDEN}
            _known_secrets[:] = sorted({*_known_secrets, *hidden}, key=len, reverse=True)
            if self._state is not None:
                log.info("%s  the secret is another one now", self._variable)
            self._state = state
        except (OSError, ValueError) as error:
            self._missed(state, error)

    def _missed(self, state: _State | None, error: OSError | ValueError) -> None:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = "holds more than ASCII"
        if not self._known:
            raise MetricsweepError(f"{self._variable}  {self._path}: {reason}") from None
        if state != self._state:
            log.warning("%s  %s: %s; the last secret stays valid", self._variable, self._path, reason)
        self._state = state


def known_secrets() -> Sequence[str]:
    """All secrets that were ever read from files, the longest first, which logs must hide."""
    return tuple(_known_secrets)


def secret_file(variable: str, path: Path, parse: Callable[[str], Secret]) -> SecretFile[Secret]:
    """The `SecretFile` of a path, always the same object, which keeps the last secret."""
    key = (variable, path, parse)
    if key not in _files:
        _files[key] = SecretFile(variable, path, parse)
    found: SecretFile[Secret] = _files[key]
    return found


def one_line(text: str) -> str:
    """Check a secret of one line, such as a password; raises ValueError."""
    if not text:
        raise ValueError("is empty")
    if not text.isprintable():
        raise ValueError("holds more than one line of visible characters")
    return text
