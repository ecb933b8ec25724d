"""Backups: the database of one moment and the files of the storage, with their hashes; and a home made of one."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final

from pydantic import BaseModel, ValidationError

from orchestrator.host.private import own_folder
from orchestrator.record.snapshot import snapshot
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, DamagedError, UnavailableError

MANIFEST: Final = "manifest.json"
"""Written last: a folder without it is no backup, or one that was not finished."""
DATABASE: Final = "metricsweep.db"
STORAGE: Final = "storage"
_PIECE: Final = 1024 * 1024

Told = Callable[[str], None]


class KeptFile(BaseModel):
    """A file of a backup."""

    path: str  # below the backup, with slashes
    size: int
    sha256: str


class Manifest(BaseModel):
    """What a backup holds."""

    version: int = 1
    made: datetime
    files: list[KeptFile]


def back_up(settings: Settings, folder: Path, tell: Told) -> Manifest:
    """Write a backup into a new or empty folder, while the service may run.

    Raises ConflictError where the folder holds something, UnavailableError where database or storage are no files here.
    """
    storage = settings.storage
    if not isinstance(storage, Path):
        raise UnavailableError("the storage is no folder of this machine; copy its bucket with its own tools")
    _require_empty(folder)
    own_folder(folder)
    tell("the database")
    # First: whatever it names is in the storage by then, and what comes later is not named.
    snapshot(settings.database, folder / DATABASE)
    kept = [_hashed(folder, DATABASE)]
    for path in _files(storage):
        name = f"{STORAGE}/{path.relative_to(storage).as_posix()}"
        try:
            kept.append(_copied(path, folder, name))
        except FileNotFoundError:
            continue  # an attempt has removed it since it was listed
        tell(name)
    made = Manifest(made=datetime.now(UTC), files=kept)
    aside = folder / f"{MANIFEST}.tmp"
    aside.write_text(made.model_dump_json(indent=1))
    aside.chmod(0o600)
    aside.replace(folder / MANIFEST)
    return made


def restore(folder: Path, settings: Settings, tell: Told) -> Manifest:
    """Make a home of a backup, all at once: until every file is there and has its hash, there is no home.

    Raises ConflictError where the home holds something, or its database or storage would lie elsewhere; DamagedError.
    """
    home = settings.resolved_home
    if settings.database_url or settings.storage_url:
        raise ConflictError(
            "a backup becomes a home of its own; unset METRICSWEEP_DATABASE_URL and METRICSWEEP_STORAGE_URL"
        )
    made = _manifest(folder)
    _require_empty(home)
    aside = home.with_name(f"{home.name}.restoring")
    if aside.exists() and not aside.is_symlink():
        shutil.rmtree(aside)  # of a restore that was killed
    own_folder(aside)
    for kept in made.files:
        tell(kept.path)
        if _copied(folder / kept.path, aside, kept.path) != kept:
            raise DamagedError(f"{kept.path} is not what the backup wrote; nothing was restored")
    if home.exists():
        home.rmdir()
    aside.rename(home)
    return made


def _manifest(folder: Path) -> Manifest:
    try:
        made = Manifest.model_validate(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise DamagedError(f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished") from None
    except (ValueError, ValidationError) as error:
        raise DamagedError(f"{folder / MANIFEST} cannot be read: {str(error).splitlines()[0]}") from None
    for kept in made.files:
        parts = PurePosixPath(kept.path)
        inside = (parts.parts[:1] == (STORAGE,) and len(parts.parts) > 1) or kept.path == DATABASE
        if parts.is_absolute() or ".." in parts.parts or not inside:
            raise DamagedError(f"the manifest names {kept.path[:200]!r}, which is no file of a backup")
    if DATABASE not in {one.path for one in made.files}:
        raise DamagedError("the manifest names no database")
    return made


def _require_empty(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise ConflictError(f"{folder} is there and not empty; name another folder")


def _files(storage: Path) -> Iterator[Path]:
    """The files below a storage in order; no links, nor what lies behind one."""
    for top, folders, names in os.walk(storage, followlinks=False):
        folders.sort()
        yield from (Path(top, name) for name in sorted(names) if not Path(top, name).is_symlink())


def _copied(source: Path, folder: Path, name: str) -> KeptFile:
    """Copy a file to a name below a folder; what it held then."""
    flags = os.O_RDONLY | os.O_NOFOLLOW
    with os.fdopen(os.open(source, flags), "rb") as reading:
        target = folder / name
        for above in reversed(PurePosixPath(name).parents):
            (folder / above).mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as writing:
            kept = _read(reading, name, writing)
            writing.flush()
            os.fsync(writing.fileno())
    return kept


def _hashed(folder: Path, name: str) -> KeptFile:
    (folder / name).chmod(0o600)
    with (folder / name).open("rb") as reading:
        return _read(reading, name)


def _read(reading: IO[bytes], name: str, writing: IO[bytes] | None = None) -> KeptFile:
    digest, size = hashlib.sha256(), 0
    while piece := reading.read(_PIECE):
        digest.update(piece)
        size += len(piece)
        if writing is not None:
            writing.write(piece)
    return KeptFile(path=name, size=size, sha256=digest.hexdigest())
