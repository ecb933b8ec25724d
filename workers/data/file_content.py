"""The content of the files of a data set: which files are read, and their hashes, stored until files change."""

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from workers.contract import DataMissingError
from workers.data.scratch import private

_TOGETHER: Final = 1_000  # files that are hashed before their hashes are stored, so that an interrupted run is not lost
_SETTLED: Final = 2 * 10**9
"""Nanoseconds. The hash of a file changed less than this ago is not stored: another change might not show in its time.
"""

State = tuple[int, int, int]
"""Size, time of the last change and inode of a file or folder."""


@dataclass
class Reading:
    """The files and folders that were read while a data set was loaded."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    inspecting: bool = False
    """Whether nothing is decoded. Then images that are not decoded yet have one pixel, so that counts are right."""
    undecoded: bool = False
    """Whether there were such images, so that their pixels are unknown."""

    def states(self) -> dict[str, State | None]:
        """The current states (size, time, inode) of the files and folders; while they are equal, the content is too."""
        return {path: _state(path) for path in (*self.files, *self.folders)}


_current: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def noting(*, inspecting: bool = False) -> Iterator[Reading]:
    """Record the files and folders that are read within the block, also for an outer block.

    A block within an inspection is a part of it.
    """
    outer = _current.get()
    reading = Reading(inspecting=inspecting or (outer is not None and outer.inspecting))
    token = _current.set(reading)
    try:
        yield reading
    finally:
        _current.reset(token)
        if outer is not None:
            outer.files |= reading.files
            outer.folders |= reading.folders
            outer.undecoded |= reading.undecoded


def inspected() -> Reading | None:
    """The current reading if it is an inspection; `None` if data sets are read for training."""
    reading = _current.get()
    return reading if reading and reading.inspecting else None


def note(*paths: Path) -> None:
    """Record that these files are read."""
    reading = _current.get()
    if reading is not None:
        reading.files.update(map(str, paths))


def note_folder(path: Path | str) -> None:
    """Record that the folder is listed."""
    reading = _current.get()
    if reading is not None:
        reading.folders.add(str(path))


def below(root: Path, names: Iterable[str]) -> Reading:
    """The files `names` of the data root, and all files in those that are folders; raises DataMissingError."""
    reading = Reading()
    for name in names:
        place = root / name
        if place.is_dir():
            for folder, inner, files in os.walk(place, followlinks=True):
                inner[:] = sorted(entry for entry in inner if not entry.startswith("."))
                reading.folders.add(folder)
                reading.files.update(f"{folder}{os.sep}{file}" for file in files if not file.startswith("."))
        elif place.is_file():
            reading.files.add(str(place))
        else:
            raise missing(f"{name} is missing: looked in {root.absolute()}")
    return reading


def missing(what: str, put: str = "it") -> DataMissingError:
    """The error for missing files, with advice."""
    return DataMissingError(f"{what}; put {put} there, or set METRICSWEEP_DATA (or --data) to the folder that holds it")


def content(files: Iterable[str], scratch: Path) -> str:
    """The hash of files and their paths relative to their common folder.

    Raises OSError if one cannot be read.
    """
    found = digests(files, scratch)
    shared = os.path.commonpath([os.path.dirname(path) for path in found]) if found else ""  # noqa: PTH120 - many
    whole = hashlib.sha256()
    for name, digest in sorted((os.path.relpath(path, shared), digest) for path, digest in found.items()):
        whole.update(os.fsencode(name) + f"\0{digest}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def digests(files: Iterable[str], scratch: Path) -> dict[str, str]:
    """The SHA-256 of each file, read again only if its size, time or inode has changed; raises OSError.

    Hashes are kept in a database in the scratch folder. If it cannot be used, all files are read.
    """
    states = {path: _stated(path) for path in sorted({os.path.abspath(path) for path in files})}
    database = private(scratch / "hashes") / "files.db"
    found = _kept(database, states)
    unknown = [path for path in states if path not in found]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4) as threads:
        for first in range(0, len(unknown), _TOGETHER):
            some = unknown[first : first + _TOGETHER]
            made = dict(zip(some, threads.map(_hash, some), strict=True))
            found |= {path: digest for path, (digest, _) in made.items()}
            _keep(database, {path: (*state, digest) for path, (digest, state) in made.items() if state is not None})
    return found


def _kept(database: Path, states: Mapping[str, State]) -> dict[str, str]:
    """The kept hashes of files that have not changed."""
    query = "SELECT digest FROM file WHERE path = ? AND size = ? AND time = ? AND inode = ?"
    found: dict[str, str] = {}
    with suppress(sqlite3.Error), closing(_opened(database)) as connection:
        for path, state in states.items():
            if row := connection.execute(query, (os.fsencode(path), *state)).fetchone():
                found[path] = row[0]
    return found


def _keep(database: Path, rows: Mapping[str, tuple[int, int, int, str]]) -> None:
    with suppress(sqlite3.Error), closing(_opened(database)) as connection, connection:
        made = [(os.fsencode(path), *row) for path, row in rows.items()]
        connection.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?)", made)


def _opened(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, timeout=30.0)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS file (path BLOB PRIMARY KEY, size, time, inode, digest) WITHOUT ROWID"
    )
    return connection


def _hash(path: str) -> tuple[str, State | None]:
    """The SHA-256 of a file, and its state, or None if it may have changed without showing it."""
    before = _stated(path)
    with open(path, "rb") as file:  # noqa: PTH123 - a million of them
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    settled = _state(path) == before and time.time_ns() - before[1] > _SETTLED
    return digest, before if settled else None


def _stated(path: str) -> State:
    status = os.stat(path)  # noqa: PTH116 - a million of them
    return status.st_size, status.st_mtime_ns, status.st_ino


def _state(path: str) -> State | None:
    try:
        return _stated(path)
    except OSError:
        return None
