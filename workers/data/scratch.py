"""The scratch folder of a machine, for shared and temporary files of trainings, closed to other accounts."""

import functools
import grp
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Final, TypeVar

from filelock import FileLock, Timeout

from workers.contract import DataDamagedError

T = TypeVar("T")

_WAITED: Final = 1.0  # seconds for a lock, after which is asked whether to go on waiting
_NAME_BYTES: Final = 64  # of a folder's name that tell people what is in it; its key tells it from others
_CODE_CACHES: Final = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "PYTORCH_KERNEL_CACHE_PATH": "kernels",
    "CUDA_CACHE_PATH": "cuda",
    "NUMBA_CACHE_DIR": "numba",
}
"""Environment variables for folders of compiled code, and the names of these folders."""
_UNKNOWN: Final = 65_534  # the owner, seen within a rootless container, of what belongs to root outside


class UnsafeFolderError(PermissionError):
    """Another account could replace a folder or file; the message says where, and what to do."""


def scratch() -> Path:
    """Returns the machine's scratch folder, created if necessary; raises UnsafeFolderError.

    It is in the folder for temporary files, so that TMPDIR moves it.
    """
    return private(unmade())


def unmade() -> Path:
    """The path of the scratch folder, whether it exists or not."""
    return Path(tempfile.gettempdir()).absolute() / f"metricsweep-scratch-{os.getuid()}"


def private(folder: Path) -> Path:
    """Creates a folder if necessary, and checks that only this user and root can replace its content.

    A folder of ours that others could only read is closed to them. Raises UnsafeFolderError for a link, for a folder
    that somebody else owns or could have written in, and for one inside such a folder.
    """
    folder = folder.absolute()
    for above in reversed(folder.parents):
        _check_above(above)
    for above in reversed(folder.parents):
        above.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileExistsError):  # what is there, a dangling link for one, is judged below
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeFolderError(f"{folder} is a link, so that its owner decides what is read there; remove it{_ADVICE}")
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeFolderError(f"{folder} is not a folder; remove it{_ADVICE}")
    if status.st_uid != os.getuid():
        raise UnsafeFolderError(f"{folder} belongs to another account (uid {status.st_uid}); have it removed{_ADVICE}")
    if _others_write(status):
        raise UnsafeFolderError(f"others could write in {folder}, so what is there may be theirs; remove it{_ADVICE}")
    if status.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def named(name: str, key: str) -> str:
    """A folder name within the scratch folder: the beginning of `name` and of the hash `key`."""
    return f"{os.fsencode(name)[:_NAME_BYTES].decode('utf-8', 'ignore')}-{key[:16]}"


def claim_code_caches() -> None:
    """Make libraries store compiled code in the scratch folder; call it before torch is imported.

    By default torch's compiler runs what it finds in `torchinductor_<login>` in the folder for temporary files, which
    any account can create first. A folder that the environment names is kept. Raises UnsafeFolderError.
    """
    folder = private(scratch() / "code")
    for variable, name in _CODE_CACHES.items():
        chosen = os.environ.get(variable)
        if not chosen or Path(chosen).name.startswith("torchinductor_"):  # a parent process imported torch before this
            os.environ[variable] = str(private(folder / name))
    # The compiler keeps the headers that it prepares in its default place, whatever the variable above says.
    os.environ["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, if it is ours and no link; raises UnsafeFolderError, and OSError as `open` does."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if path.is_symlink():
            raise UnsafeFolderError(f"{path} is a link, which we never make there; remove it") from error
        raise
    file = os.fdopen(number, "rb")
    status = os.fstat(number)
    if status.st_uid != os.getuid() or not stat.S_ISREG(status.st_mode):
        file.close()
        raise UnsafeFolderError(f"{path} was not written by us; remove it")
    return file


def allocate(path: Path, size: int) -> None:
    """Create a file of `size` bytes; raises OSError on a full disk, instead of a memory fault when it is filled."""
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)


def built(
    folder: Path, read: Callable[[], T | None], write: Callable[[Path], None], wait: Callable[[], None] = lambda: None
) -> T:
    """Returns what `read` finds in a scratch folder; if that is None, `write` first fills the folder atomically.

    One process of the machine writes, and others wait; they call `wait` every second, which may raise to give up.
    Raises DataDamagedError if what was written cannot be read.
    """
    with _locked(FileLock(f"{folder}.lock"), wait):
        content = read()  # by now another process may have written it
        if content is None:
            _fill(folder, write)
            content = read()
    if content is None:
        raise DataDamagedError(f"{folder}: the content read differs from what was written; check the disk")
    return content


def _locked(lock: FileLock, wait: Callable[[], None]) -> AbstractContextManager[object]:
    """The lock, once no other process has it."""
    while True:
        try:
            return lock.acquire(timeout=_WAITED)
        except Timeout:
            wait()


def _fill(folder: Path, write: Callable[[Path], None]) -> None:
    aside = folder.with_name(f".{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed
    aside.mkdir()
    try:
        write(aside)
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _check_above(folder: Path) -> None:
    """Check that no other account can replace what is in a parent folder. Links are followed."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return  # it will be made
    trusted = {0, os.getuid(), _UNKNOWN}
    if stat.S_ISLNK(status.st_mode):
        if status.st_uid not in trusted:
            raise UnsafeFolderError(f"{folder} is a link of another account (uid {status.st_uid}){_ELSEWHERE}")
        target = folder.resolve()
        for above in (*reversed(target.parents), target):
            _check_above(above)
        return
    if status.st_uid not in trusted:
        raise UnsafeFolderError(f"{folder} belongs to another account (uid {status.st_uid}){_ELSEWHERE}")
    if _others_write(status) and not status.st_mode & stat.S_ISVTX:  # with it only its owner can rename an entry
        raise UnsafeFolderError(f"others may exchange what lies in {folder}{_ELSEWHERE}")


def _others_write(found: os.stat_result) -> bool:
    """Whether another account could write in a folder; a group with only this user does not count."""
    by_group = found.st_mode & stat.S_IWGRP and not (found.st_gid == os.getgid() and _alone())
    return bool(found.st_mode & stat.S_IWOTH or by_group)


@functools.cache
def _alone() -> bool:
    """Whether this process's group has only this user, as many systems create it."""
    try:
        group, user = grp.getgrgid(os.getgid()), pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}


_ADVICE: Final = ", or set TMPDIR to a folder of yours"
_ELSEWHERE: Final = "; set TMPDIR to a folder of yours"
