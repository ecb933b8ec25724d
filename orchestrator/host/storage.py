"""The storage: where attempts keep checkpoints, artifacts and spools; a folder that all see, or a bucket by its URL."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from orchestrator.host.bucket import Address, Bucket, address


class Folder:
    """A folder that conductor, API and workers all see: what workers write there is stored.

    A `folder` within is `<training>` or `<training>/<number>`. Raises FileNotFoundError for what is not there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def size(self, folder: str, name: str) -> int:
        """The bytes of a file."""
        return self._path(folder, name).stat().st_size

    def content(self, folder: str, name: str) -> bytes:
        """A file whole."""
        return self._path(folder, name).read_bytes()

    def names(self, folder: str) -> list[str]:
        """The files directly in a folder, sorted."""
        try:
            return sorted(path.name for path in (self.root / folder).iterdir() if path.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entries(self, folder: str) -> list[tuple[str, int]]:
        """The files directly in a folder with their bytes, sorted; links are none, nor what lies behind one."""
        try:
            with os.scandir(self._inside(folder)) as found:
                files = [entry for entry in found if entry.is_file(follow_symlinks=False)]
                return sorted((entry.name, entry.stat(follow_symlinks=False).st_size) for entry in files)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def discard(self, folder: str, name: str) -> None:
        """Remove one file; one that is not there changes nothing, and of a link the link alone goes."""
        with suppress(FileNotFoundError):
            (self._inside(folder) / PurePosixPath(name).name).unlink()

    def remove(self, folder: str) -> None:
        """Remove a folder; what cannot be removed stays."""
        shutil.rmtree(self.root / folder, ignore_errors=True)

    def check(self) -> None:
        """Nothing: the first attempt makes the folder."""

    def problem(self) -> str | None:
        """Why nothing can be kept here; none: it can."""
        there = next(one for one in (self.root, *self.root.parents) if one.exists())
        if there == self.root and not there.is_dir():
            return "its folder is a file"
        return None if os.access(there, os.W_OK | os.X_OK) else "its folder cannot be written"

    def _inside(self, folder: str) -> Path:
        """A folder of the storage; FileNotFoundError for one that a link leads out of it."""
        inside = (self.root / folder).resolve()
        if inside != self.root.resolve() / folder:
            raise FileNotFoundError(errno.ENOENT, "no such folder in the storage", folder)
        return inside

    def _path(self, folder: str, name: str) -> Path:
        """Where a file lies; a link that leads out of its folder leads nowhere."""
        inside = (self.root / folder).resolve()
        path = (inside / name).resolve()
        if not inside.is_relative_to(self.root.resolve()) or path.parent != inside:
            raise FileNotFoundError(errno.ENOENT, "no such file in the storage", f"{folder}/{name}")
        return path


Storage = Folder | Bucket


def opened(where: Path | str) -> Storage:
    """The storage at a folder or a URL; raises ValueError, which never repeats what may be secret."""
    found = parsed(where) if isinstance(where, str) else where
    return Folder(found) if isinstance(found, Path) else Bucket(found)


def parsed(url: str) -> Path | Address:
    """A path, a file:// URL or an s3:// URL taken apart; raises ValueError."""
    if url.startswith("file://"):
        return Path(unquote(url.removeprefix("file://")))
    if "://" not in url:
        return Path(url)
    return address(url)
