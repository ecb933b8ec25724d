"""Folders and files that are closed to the other accounts of a machine."""

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

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
