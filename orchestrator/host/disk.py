"""The machine's disks: how much room one must have, what it says when it takes no more, and files written whole."""

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
LEAST_FREE: Final = GIB
"""Bytes: with less, a checkpoint or the database's next page may find no room."""
SMALL: Final = 20
"""Of a disk below 20 GiB, this part of it must be free instead."""
DISK_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""What a system answers when a disk is full, broken or read-only: nothing is wrong with what was asked."""


class Disk(NamedTuple):
    """The disk of a folder, with its sizes in bytes."""

    free: int
    size: int
    read_only: bool

    @property
    def least(self) -> int:
        """The free bytes below which nothing new is begun."""
        return min(LEAST_FREE, self.size // SMALL)

    @property
    def trouble(self) -> str | None:
        """Why nothing new may be written; `None` if there is room."""
        if self.read_only:
            return "read-only"
        if self.free < self.least:
            return f"{_amount(self.free)} free, of which {_amount(self.least)} are needed"
        return None


def disk_of(folder: Path) -> Disk:
    """The disk on which a folder lies, or will lie once it is made. Raises OSError."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    usage = shutil.disk_usage(there)
    return Disk(usage.free, usage.total, bool(os.statvfs(there).f_flag & os.ST_RDONLY))


def troubles(places: Mapping[str, Path]) -> dict[str, str]:
    """What is wrong with the disks of named folders, by name: too little room, read-only, or no answer."""
    found = {}
    for name, folder in places.items():
        try:
            trouble = disk_of(folder).trouble
        except OSError as error:
            trouble = error.strerror or str(error)
        if trouble is not None:
            found[name] = trouble
    return found


def held(found: Mapping[str, str]) -> str:
    """The sentence for what waits because of such troubles."""
    named = ", ".join(f"{name}: {trouble}" for name, trouble in found.items())
    return f"nothing new is begun, since a disk takes no more ({named}); it goes on when there is room"


def is_disk_error(error: BaseException) -> bool:
    """Whether an error says that a disk is full, broken or read-only."""
    return isinstance(error, OSError) and error.errno in DISK_ERRORS


@contextmanager
def replacing(file: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `file` when the block ends without an error.

    It is written in the same folder under another name and renamed, so that `file` is the old one or the new one,
    and after an error the old one. `mode`: its permissions; `None` keeps those of the old file, or takes the usual
    ones. What is no regular file, such as a pipe, is written in place. Raises OSError with the name of `file`.
    """
    target = Path(os.path.realpath(file))
    try:
        before = target.stat() if target.exists() else None
        if before is not None and not stat.S_ISREG(before.st_mode):
            with target.open("wb") as made:
                yield made
            return
        aside = target.with_name(f".{secrets.token_hex(8)}.tmp")  # the file's own name may be as long as names can be
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
        if error.filename is None and not is_disk_error(error):  # such as a connection that the writer reads from
            raise
        raise OSError(error.errno, error.strerror, str(file)) from error


def replace_file(file: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file whole, or leave the old one as it was; makes its folder. Raises OSError with the file's name."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    with replacing(file, mode) as made:
        made.write(content)


def _amount(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:.1f} MiB"
