"""The scratch folder of a machine: what its trainings share or throw away, closed to the other accounts."""

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
"""The variables that name folders of compiled code, and the folders."""
_UNKNOWN: Final = 65_534
"""Who owns, seen from within a container without root, what is root's outside."""


class UnsafeFolderError(PermissionError):
    """A folder or a file lies where another account could exchange it; the message says where, and what to do."""


def scratch() -> Path:
    """This machine's scratch folder, made where it is not there; raises UnsafeFolderError.

    It lies in the folder for temporary files, so TMPDIR moves it.
    """
    return private(unmade())


def unmade() -> Path:
    """Where the scratch folder is or will be; nothing is made or looked at."""
    return Path(tempfile.gettempdir()).absolute() / f"metricsweep-scratch-{os.getuid()}"


def private(folder: Path) -> Path:
    """The folder, made where it is not there, once nobody but this user (and root) can exchange anything in it.

    A folder of ours that others could only read is closed to them. Raises UnsafeFolderError for one that is a link,
    that somebody else owns or could have written in, and for one that lies in such a folder.
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
        raise UnsafeFolderError(f"{folder} is a link, and whoever made it says what is read there; remove it{_ADVICE}")
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeFolderError(f"{folder} is no folder; remove it{_ADVICE}")
    if status.st_uid != os.getuid():
        raise UnsafeFolderError(f"{folder} belongs to another account (uid {status.st_uid}); have it removed{_ADVICE}")
    if _others_write(status):
        raise UnsafeFolderError(f"others could write in {folder}, so what is there may be theirs; remove it{_ADVICE}")
    if status.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def named(name: str, key: str) -> str:
    """The name of a folder in scratch: the beginning of `name`, which may be as long as a file system allows, and of
    the hash `key`."""
    return f"{os.fsencode(name)[:_NAME_BYTES].decode('utf-8', 'ignore')}-{key[:16]}"


def claim_code_caches() -> None:
    """Have libraries keep the code that they compile in the scratch folder; call it before torch is imported.

    By default torch's compiler runs what it finds in `torchinductor_<login>` in the folder for temporary files, which
    any account can make first. A place that the environment names is left as it is. Raises UnsafeFolderError.
    """
    folder = private(scratch() / "code")
    for variable, name in _CODE_CACHES.items():
        chosen = os.environ.get(variable)
        if not chosen or Path(chosen).name.startswith("torchinductor_"):  # a parent process imported torch before this
            os.environ[variable] = str(private(folder / name))
    # The compiler keeps the headers that it prepares in its default place, whatever the variable above says.
    os.environ["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"


def opened(path: Path) -> IO[bytes]:
    """A file for reading, where it is one of ours and no link; raises UnsafeFolderError, and OSError as `open` does."""
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


def built(
    folder: Path,
    read: Callable[[], T | None],
    write: Callable[[Path], None],
    wait: Callable[[], None] = lambda: None,
) -> T:
    """What `read` finds in the folder; where that is nothing, `write` fills it first, whole or not at all.

    One process of the machine does so, into a folder aside, and others wait; these call `wait` every second, which may
    raise to give up. Raises DataDamagedError where nothing can be read of what was written.
    """
    with _locked(FileLock(f"{folder}.lock"), wait):
        content = read()  # by now another process may have written it
        if content is None:
            _fill(folder, write)
            content = read()
    if content is None:
        raise DataDamagedError(f"{folder}: what was written there is not what is read; check the disk")
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
    """A folder on the way: what lies in it must be no other account's to exchange. Links on the way are followed."""
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
    """Whether another account could write in a folder; a group that is this user's alone is no other account."""
    by_group = found.st_mode & stat.S_IWGRP and not (found.st_gid == os.getgid() and _alone())
    return bool(found.st_mode & stat.S_IWOTH or by_group)


@functools.cache
def _alone() -> bool:
    """Whether this process's group is the one that many systems make for each user, and has no other members."""
    try:
        group, user = grp.getgrgid(os.getgid()), pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}


_ADVICE: Final = ", or set TMPDIR to a folder of yours"
_ELSEWHERE: Final = "; set TMPDIR to a folder of yours"
