"""Disks: how much space must be free, errors of full disks, and files that are replaced whole."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

GIB: Final = 2**30
LEAST_FREE: Final = GIB  # bytes; with less, there may be no space for a checkpoint or the next page of the database
SMALL: Final = 20  # of a disk below 20 GiB, a twentieth must be free instead
_DISK_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""Errors of a full, broken or read-only disk."""


class Disk(NamedTuple):
    """A disk, with its sizes in bytes."""

    free: int
    size: int
    read_only: bool

    @property
    def least(self) -> int:
        """The free bytes of the disk below which nothing new is started."""
        return min(LEAST_FREE, self.size // SMALL)

    @property
    def trouble(self) -> str | None:
        """Why nothing new may be written to the disk; `None` if there is room."""
        if self.read_only:
            return "read-only"
        if self.free < self.least:
            return f"{_amount(self.free)} free, of which {_amount(self.least)} are needed"
        return None


def disk_of(folder: Path) -> Disk:
    """The disk of a folder, which may not exist yet; raises OSError."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    usage = shutil.disk_usage(there)
    return Disk(usage.free, usage.total, bool(os.statvfs(there).f_flag & os.ST_RDONLY))


def troubles(places: Mapping[str, Path]) -> dict[str, str]:
    """What is wrong with the disks of named folders, by name: too little space, read-only, or no answer."""
    found = {}
    for name, folder in places.items():
        try:
            trouble = disk_of(folder).trouble
        except OSError as error:
            trouble = error.strerror or str(error)
        if trouble is not None:
            found[name] = trouble
    return found


def wait_reason(found: Mapping[str, str]) -> str:
    """A sentence that says why trainings wait, from the `troubles` of disks."""
    named = ", ".join(f"{name}: {trouble}" for name, trouble in found.items())
    return f"nothing new is begun, since a disk takes no more ({named}); it goes on when there is room"


def is_disk_error(error: BaseException) -> bool:
    """Whether an error means that a disk is full, broken or read-only."""
    return isinstance(error, OSError) and error.errno in _DISK_ERRORS


@contextmanager
def replacing(file: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A binary file that replaces `file` when the block ends without an error.

    It is written under another name in the same folder and renamed, so that `file` is always the old or the new one.
    `mode` sets its permissions; `None` keeps those of the old file, or the default. A file that is not regular, such as
    a pipe, is written in place. Raises OSError with the name of `file`.
    """
    target = Path(os.path.realpath(file))
    try:
        before = target.stat() if target.exists() else None
        if before is not None and not stat.S_ISREG(before.st_mode):
            with target.open("wb") as made:
                yield made
            return
        aside = target.with_name(f".{secrets.token_hex(8)}.tmp")  # the name of the file may have the maximum length
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode or 0o666), "wb") as made:
                if mode is None and before is not None:
                    os.fchmod(made.fileno(), stat.S_IMODE(before.st_mode))
                yield made
                made.flush()
                os.fsync(made.fileno())
            aside.replace(target)
        except BaseException:
            with suppress(OSError):
                aside.unlink()
            raise
    except OSError as error:
        if error.filename is None and not is_disk_error(error):  # of something else, such as a connection
            raise
        raise OSError(error.errno, error.strerror, str(file)) from error


def replace_file(file: Path, content: bytes, mode: int | None = None) -> None:
    """Replace a file whole, and make its folder; after an error the old file stays. Raises OSError."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    with replacing(file, mode) as made:
        made.write(content)


def _amount(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:.1f} MiB"
