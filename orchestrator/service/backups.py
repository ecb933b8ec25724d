"""Backups: writes a snapshot of the database and the files of the storage, with hashes, and restores them."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import BaseModel, ValidationError

from orchestrator.host.disk import replace_file
from orchestrator.host.files import own_folder
from orchestrator.host.storage import Bucket, Folder, Storage, opened
from orchestrator.record.transfer import loading, require_empty, require_restorable, snapshot
from orchestrator.settings import Secrets, Settings
from orchestrator.views.errors import ConflictError, DamagedError, MetricsweepError

MANIFEST: Final = "manifest.json"
"""Written last; a folder without it is not a finished backup."""
DATABASE: Final = "metricsweep.db"
_STORAGE: Final = "storage"

Progress = Callable[[str], None]


class KeptFile(BaseModel):
    """A file of a backup, with its size and hash."""

    path: str  # below the backup, with slashes
    size: int
    sha256: str


class Manifest(BaseModel):
    """The list of the files of a backup."""

    version: int = 1
    made: datetime
    files: list[KeptFile]


def back_up(settings: Settings, folder: Path, progress: Progress) -> Manifest:
    """Write a backup of any database and storage into a new or empty folder; the service may run meanwhile.

    Raises ConflictError if the folder is not empty, UnavailableError, OSError of a bucket.
    """
    storage = opened(settings.storage)
    _require_empty(folder)
    own_folder(folder)
    try:
        return _written(settings, storage, folder, progress)
    except BaseException:
        for path in folder.iterdir():  # the written part takes room, and would make another try fail
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        raise


def _written(settings: Settings, storage: Storage, folder: Path, progress: Progress) -> Manifest:
    progress("the database")
    # The database first: every file that it names is in the storage by then.
    snapshot(settings.database, folder / DATABASE, lambda: Secrets(settings).database_password)
    kept = [_hashed(folder, DATABASE)]
    for key in storage.every() if isinstance(storage, Bucket) else _below(storage.root):
        name = f"{_STORAGE}/{key}"
        try:
            kept.append(_stored(storage, key, folder, name))
        except FileNotFoundError:
            continue  # an attempt removed it after it was listed
        progress(name)
    made = Manifest(made=datetime.now(UTC), files=kept)
    replace_file(folder / MANIFEST, made.model_dump_json(indent=1).encode(), mode=0o600)
    return made


def restore(folder: Path, settings: Settings, progress: Progress) -> Manifest:
    """Restore a backup to the places of the settings: a new home, an empty Postgres, an empty bucket.

    The home and the rows of the database appear at once, after everything else. Raises ConflictError if a place is not
    empty, UnavailableError for a backup of a newer release, DamagedError.
    """
    home, storage = settings.resolved_home, opened(settings.storage)
    if isinstance(storage, Folder) and storage.root != home / _STORAGE:
        raise ConflictError(
            "the files of a backup become a bucket's or a home's; unset METRICSWEEP_STORAGE_URL, or name a bucket"
        )
    if settings.database.startswith("sqlite") and settings.database_url:
        raise ConflictError(
            "the database of a backup becomes a Postgres or a home's file; unset METRICSWEEP_DATABASE_URL, or name one"
        )
    made = _manifest(folder)
    _require_empty(home)
    if isinstance(storage, Bucket) and next(storage.every(), None) is not None:
        raise ConflictError("the bucket's folder is not empty; name another one")
    if settings.database_url:
        require_empty(settings.database, lambda: Secrets(settings).database_password)
    aside = home.with_name(f"{home.name}.restoring")
    if aside.exists() and not aside.is_symlink():
        shutil.rmtree(aside)  # of a restore that was killed
    own_folder(aside)
    for kept in made.files:
        progress(kept.path)
        if _copied(folder / kept.path, aside, kept.path) != kept:
            raise DamagedError(f"{kept.path} differs from the file that the backup wrote; nothing was restored")
        if kept.path == DATABASE:
            require_restorable(aside / DATABASE)
        elif isinstance(storage, Bucket):
            above, _, last = kept.path.removeprefix(f"{_STORAGE}/").rpartition("/")
            storage.put(aside / kept.path, above, last)
            (aside / kept.path).unlink()
    if isinstance(storage, Bucket):
        shutil.rmtree(aside / _STORAGE, ignore_errors=True)  # empty folders
    if settings.database_url:
        _loaded(aside, home, settings)
    else:
        _renamed(aside, home)
    return made


def _loaded(aside: Path, home: Path, settings: Settings) -> None:
    """Rename the new home while its database is loaded into that of the settings: both, or neither."""
    try:
        with loading(aside / DATABASE, settings.database, lambda: Secrets(settings).database_password):
            for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
                (aside / name).unlink(missing_ok=True)
            _renamed(aside, home)
    except MetricsweepError:
        if not aside.exists():
            home.rename(aside)  # a home without its rows would make another try fail
        raise


def _renamed(aside: Path, home: Path) -> None:
    if home.exists():
        home.rmdir()
    aside.rename(home)


def _manifest(folder: Path) -> Manifest:
    try:
        made = Manifest.model_validate(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise DamagedError(f"{folder} has no {MANIFEST}: it is not a backup, or the backup was not finished") from None
    except (ValueError, ValidationError) as error:
        raise DamagedError(f"{folder / MANIFEST} cannot be read: {str(error).splitlines()[0]}") from None
    for kept in made.files:
        parts = PurePosixPath(kept.path)
        inside = (parts.parts[:1] == (_STORAGE,) and len(parts.parts) > 1) or kept.path == DATABASE
        if parts.is_absolute() or ".." in parts.parts or not inside:
            raise DamagedError(f"the manifest names {kept.path[:200]!r}, which is no file of a backup")
    if DATABASE not in {kept.path for kept in made.files}:
        raise DamagedError("the manifest names no database")
    return made


def _require_empty(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise ConflictError(f"{folder} exists and is not empty; name another folder")


def _below(storage: Path) -> Iterator[str]:
    """The relative paths of the files in a storage, sorted, without links and what they lead to."""
    for top, folders, names in os.walk(storage, followlinks=False):
        folders.sort()
        files = (Path(top, name) for name in sorted(names))
        yield from (path.relative_to(storage).as_posix() for path in files if not path.is_symlink())


def _stored(storage: Storage, key: str, folder: Path, name: str) -> KeptFile:
    if isinstance(storage, Folder):
        return _copied(storage.root / key, folder, name)
    _make_parents(folder, name)
    storage.fetch(key, folder / name)
    return _hashed(folder, name)


def _copied(source: Path, folder: Path, name: str) -> KeptFile:
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as reading:
        _make_parents(folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(folder / name, flags, 0o600), "wb") as writing:
            shutil.copyfileobj(reading, writing)
            writing.flush()
            os.fsync(writing.fileno())
    return _hashed(folder, name)


def _make_parents(folder: Path, name: str) -> None:
    for above in reversed(PurePosixPath(name).parents):
        (folder / above).mkdir(mode=0o700, exist_ok=True)


def _hashed(folder: Path, name: str) -> KeptFile:
    (folder / name).chmod(0o600)
    with (folder / name).open("rb") as reading:
        digest = hashlib.file_digest(reading, "sha256").hexdigest()
        return KeptFile(path=name, size=reading.tell(), sha256=digest)
