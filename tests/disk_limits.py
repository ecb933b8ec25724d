"""Disks that take no more: a limit on the size of a process's files, and small file systems that fill up."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process can grow beyond so many bytes; the system answers EFBIG, to a full disk ENOSPC."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@dataclass(frozen=True)
class SmallDisk:
    """A file system of its own, mounted at a folder."""

    folder: Path

    def fill(self, but: int = 0) -> None:
        """Leave no room, or that of so many bytes."""
        piece = b"\0" * 65536
        with (self.folder / "filler").open("ab", buffering=0) as file:
            while piece:
                try:
                    file.write(piece)
                except OSError:
                    piece = piece[: len(piece) // 2]
            file.truncate(file.tell() - but)

    def empty(self) -> None:
        """Give the room back."""
        (self.folder / "filler").unlink()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A disk of `size`, such as 200k, at a folder; skips the test where this process may mount nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
        yield SmallDisk(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder in which no file can be opened for writing, not even by root; files that are open can be written on."""
    with _mounted(folder, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield


@contextmanager
def _mounted(folder: Path, *arguments: str) -> Iterator[None]:
    mount = ["mount", *arguments, str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this process may mount nothing")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
