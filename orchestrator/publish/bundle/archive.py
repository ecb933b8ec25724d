"""A zip archive with a manifest: the same content gives the same bytes, and nothing is in it that it does not name."""

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

from orchestrator.views.errors import DamagedError

MANIFEST: Final = "manifest.json"
FORMAT: Final = "metricsweep-bundle"
VERSION: Final = 1
MOST_FILES: Final = 10_000
MOST_BYTES: Final = 2 * 2**30
"""What all files of an archive may unpack to."""
MOST_OF_MANIFEST: Final = 16 * 2**20

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,199}){0,7}")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name
_MODE: Final = 0o100644 << 16
_CHUNK: Final = 2**20


class ArchiveWriter:
    """Adds files one by one, none of which is held whole; `finish` adds the manifest. Use it in a `with` block."""

    def __init__(self, out: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._files: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def add(self, name: str, content: bytes) -> None:
        """A file from memory."""
        self.stream(name, io.BytesIO(content))

    def stream(self, name: str, content: IO[bytes]) -> None:
        """A file from a stream; ValueError for a name that is taken or leads out of the archive."""
        if name in self._files or name == MANIFEST or not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a file of this archive")
        digest, size = hashlib.sha256(), 0
        with self._zip.open(_entry(name), "w", force_zip64=True) as member:
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                member.write(chunk)
        self._files[name] = {"sha256": digest.hexdigest(), "bytes": size}

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest: `facts` and the hash of every file."""
        said = {"format": FORMAT, "version": VERSION, **facts, "files": dict(sorted(self._files.items()))}
        text = json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        with self._zip.open(_entry(MANIFEST), "w", force_zip64=True) as member:
            member.write(text.encode())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _MODE
    entry.create_system = 3  # as on Unix, wherever it is made
    return entry


class Reader:
    """An archive whose files are those of its manifest, each as it was written."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Mapping[str, Any]) -> None:
        self._zip = archive
        self.manifest = manifest

    def holds(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return name in self.manifest["files"]

    def read(self, name: str) -> bytes:
        """A file's content; raises DamagedError where there is none of that name."""
        if name not in self.manifest["files"]:
            raise DamagedError(f"the bundle has no {name}")
        return self._zip.read(name)

    @property
    def id(self) -> str:
        """The SHA-256 of the manifest: two bundles with the same one hold the same."""
        return hashlib.sha256(self._zip.read(MANIFEST)).hexdigest()


@contextmanager
def opened(source: IO[bytes]) -> Iterator[Reader]:
    """An archive, checked whole; DamagedError names every file that is not what the manifest says."""
    try:
        with zipfile.ZipFile(source) as archive:
            manifest = _manifest(archive)
            _verify(archive, manifest["files"])
            yield Reader(archive, manifest)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise DamagedError(f"this is no bundle, or a damaged one: {error}") from error


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise DamagedError(f"a bundle has at most {MOST_FILES:,} files, which unpack to {MOST_BYTES // 2**30} GiB")
    if len(set(names)) != len(names) or any(not _NAME.fullmatch(name) for name in names):
        raise DamagedError("the bundle has a file whose name is taken, or leads elsewhere")
    if MANIFEST not in names or archive.getinfo(MANIFEST).file_size > MOST_OF_MANIFEST:
        raise DamagedError(f"this is no bundle: it has no {MANIFEST}, or too large a one")
    try:
        manifest = json.loads(archive.read(MANIFEST))
        known = (manifest["format"], manifest["version"]) == (FORMAT, VERSION)
        hashes = {str(name): str(one["sha256"]) for name, one in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{MANIFEST} cannot be read: {error}") from error
    if not known:
        raise DamagedError(f"{MANIFEST} is of another format than {FORMAT} {VERSION}")
    return {**manifest, "files": hashes}


def _verify(archive: zipfile.ZipFile, hashes: Mapping[str, str]) -> None:
    present = {entry.filename for entry in archive.infolist()} - {MANIFEST}
    changed = [name for name in sorted(present & hashes.keys()) if _digest(archive, name) != hashes[name]]
    wrong = {"changed": changed, "missing": sorted(hashes.keys() - present), "added": sorted(present - hashes.keys())}
    said = "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names)
    if said:
        raise DamagedError(f"the bundle is not what its manifest says. {said}")


def _digest(archive: zipfile.ZipFile, name: str) -> str | None:
    """The hash of a file; none where it cannot even be unpacked."""
    digest = hashlib.sha256()
    try:
        with archive.open(name) as member:
            while chunk := member.read(_CHUNK):
                digest.update(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        return None
    return digest.hexdigest()
