"""The storage of checkpoints, artifacts and spools: a shared folder, or a bucket with an s3:// URL."""

import errno
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from orchestrator.views.errors import MetricsweepError

log = logging.getLogger(__name__)

OPTIONS: Final = ("endpoint_override", "region", "scheme")  # the parameters of an s3:// URL
_CONNECT_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 10.0  # how long a request may transfer nothing
REQUESTS: Final = 2  # attempts of the client at one request
EXAMPLE: Final = "s3://bucket/folder?endpoint_override=minio:9000&scheme=http"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed s3:// URL."""

    bucket: str
    prefix: str  # without slashes at its ends
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


class Bucket:
    """A bucket of an S3-compatible store. Credentials come from the environment, such as AWS_ACCESS_KEY_ID.

    Methods raise FileNotFoundError for a missing object, and OSError if the store does not answer or refuses.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._top = f"{address.bucket}/{address.prefix}".rstrip("/")

    def size(self, folder: str, name: str) -> int:
        """The size of an object in bytes."""
        key = f"{folder}/{name}".lstrip("/")
        with self._reached(key):
            found = self._files.get_file_info(f"{self._top}/{key}")
        if not found.is_file:
            raise FileNotFoundError(errno.ENOENT, "no such object in the storage", key)
        return int(found.size)

    def content(self, folder: str, name: str) -> bytes:
        """The content of an object."""
        key = f"{folder}/{name}"
        with self._reached(key), self._files.open_input_file(f"{self._top}/{key}") as stream:
            found: bytes = stream.read()
            return found

    @contextmanager
    def opened(self, folder: str, name: str) -> Iterator[IO[bytes]]:
        """An object as a stream of bytes."""
        key = f"{folder}/{name}"
        with self._reached(key), self._files.open_input_stream(f"{self._top}/{key}") as stream:
            yield stream

    def names(self, folder: str) -> list[str]:
        """The objects directly in a folder, sorted."""
        return [name for name, _ in self.entries(folder)]

    def entries(self, folder: str) -> list[tuple[str, int]]:
        """The objects directly in a folder with their sizes in bytes, sorted."""
        import pyarrow.fs

        with self._reached(folder):
            wanted = pyarrow.fs.FileSelector(f"{self._top}/{folder}", allow_not_found=True)
            return sorted(
                (file.base_name, int(file.size)) for file in self._files.get_file_info(wanted) if file.is_file
            )

    def every(self) -> Iterator[str]:
        """The keys of all objects, sorted, without keys that cannot be names of files."""
        import pyarrow.fs

        with self._reached("its bucket"):
            wanted = pyarrow.fs.FileSelector(self._top, allow_not_found=True, recursive=True)
            keys = sorted(file.path[len(self._top) + 1 :] for file in self._files.get_file_info(wanted) if file.is_file)
        yield from (key for key in keys if not {"", ".", ".."} & set(key.split("/")) and "\0" not in key)

    def remove(self, folder: str) -> None:
        """Remove a folder with all objects in it."""
        with suppress(FileNotFoundError), self._reached(folder):
            self._files.delete_dir(f"{self._top}/{folder}")

    def check(self) -> None:
        """Raise MetricsweepError if the store answers and has no such bucket."""
        try:
            exists = self._exists()
        except OSError as error:
            log.warning("METRICSWEEP_STORAGE_URL: %s", error)
            return
        if not exists:
            where = self._address.options.get("endpoint_override", "the store")
            raise MetricsweepError(f"METRICSWEEP_STORAGE_URL: {where} has no bucket {self._address.bucket!r}; make it")

    def problem(self) -> str | None:
        """Why nothing can be stored in the bucket, or `None`."""
        try:
            return None if self._exists() else "there is no such bucket"
        except OSError as error:
            return f"does not answer: {error}"

    def _exists(self) -> bool:
        with self._reached("its bucket"):
            return bool(self._files.get_file_info(self._address.bucket).type.name != "NotFound")

    def put(self, path: Path, folder: str, name: str) -> None:
        """Store a file in the bucket; the object with that name is always the old or the new one."""
        self._copy(path, f"{folder}/{name}".lstrip("/"), up=True)
        if self.size(folder, name) != path.stat().st_size:
            raise OSError(
                errno.EIO,
                "the storage holds fewer or more bytes than were sent; the upload has to be repeated",
                f"{folder}/{name}",
            )

    def write(self, content: bytes, folder: str, name: str) -> None:
        """Store bytes as an object of the bucket."""
        key = f"{folder}/{name}"
        with self._reached(key), self._files.open_output_stream(f"{self._top}/{key}") as stream:
            stream.write(content)

    def fetch(self, key: str, path: Path) -> None:
        """Copy an object of the bucket to a file."""
        self._copy(path, key, up=False)
        folder, _, name = key.rpartition("/")
        if self.size(folder, name) != path.stat().st_size:
            raise OSError(
                errno.EIO, "fewer or more bytes came than the storage holds; the download has to be repeated", key
            )

    def discard(self, folder: str, name: str) -> None:
        """Remove an object if it exists."""
        key = f"{folder}/{name}"
        with suppress(FileNotFoundError), self._reached(key):
            self._files.delete_file(f"{self._top}/{key}")

    def _copy(self, path: Path, key: str, *, up: bool) -> None:
        import pyarrow.fs

        here, there = (pyarrow.fs.LocalFileSystem(), str(path)), (self._files, f"{self._top}/{key}")
        (source, read), (target, written) = (here, there) if up else (there, here)
        with self._reached(key):
            pyarrow.fs.copy_files(read, written, source_filesystem=source, destination_filesystem=target)

    @cached_property
    def _files(self) -> Any:
        """The client. A storage in a folder does not import pyarrow."""
        import pyarrow.fs

        options = dict(self._address.options)
        if "endpoint_override" in options and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & set(os.environ):
            options.setdefault("region", "us-east-1")  # otherwise the client waits for an answer of Amazon
        return pyarrow.fs.S3FileSystem(
            **options,
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=REQUEST_SECONDS,
            retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=REQUESTS),
        )

    @contextmanager
    def _reached(self, key: str) -> Iterator[None]:
        """Turn an error of the client into an OSError of one line with the address of the storage."""
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "no such object in the storage", key) from error
        except Exception as error:
            text = (str(error).splitlines() or [type(error).__name__])[0]
            raise OSError(f"{key} in {self._address}: {text.partition(' (Request ID')[0]}") from error


def _address(url: str) -> Address:
    """Parse a URL with a scheme; raises ValueError, which does not show secrets."""
    parts = urlsplit(url)
    if parts.scheme != "s3":
        raise ValueError(f"no storage of the kind {parts.scheme}://; give a folder, file:///folder or {EXAMPLE}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "@" in parts.netloc or "@" in options.get("endpoint_override", ""):
        raise ValueError("no credentials in the URL; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY wherever it is")
    if not parts.netloc or ":" in parts.netloc:
        raise ValueError(f"no bucket; give it as {EXAMPLE}")
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ValueError(f"no option {unknown[0]!r} of an s3:// URL; there are {', '.join(OPTIONS)}")
    scheme, _, host = options.get("endpoint_override", "").rpartition("://")
    if host:
        options |= {"endpoint_override": host} | ({"scheme": scheme} if scheme else {})
    if options.get("scheme", "https") not in {"http", "https"}:
        raise ValueError("the scheme of an s3:// URL is http or https")
    return Address(parts.netloc, parts.path.strip("/"), options)


class Folder:
    """A folder that conductor, API and workers share, in which workers write directly.

    A `folder` in it is `<training>` or `<training>/<number>`. Methods raise FileNotFoundError for a missing file.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def size(self, folder: str, name: str) -> int:
        """The size of a file in bytes."""
        return self._path(folder, name).stat().st_size

    def content(self, folder: str, name: str) -> bytes:
        """The content of a file."""
        return self._path(folder, name).read_bytes()

    def opened(self, folder: str, name: str) -> IO[bytes]:
        """A file as a stream of bytes, to be closed."""
        return self._path(folder, name).open("rb")

    def names(self, folder: str) -> list[str]:
        """The files directly in a folder, sorted."""
        try:
            return sorted(path.name for path in (self.root / folder).iterdir() if path.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entries(self, folder: str) -> list[tuple[str, int]]:
        """The files directly in a folder with their sizes in bytes, sorted, without links."""
        try:
            with os.scandir(self._inside(folder)) as found:
                files = [entry for entry in found if entry.is_file(follow_symlinks=False)]
                return sorted((entry.name, entry.stat(follow_symlinks=False).st_size) for entry in files)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def discard(self, folder: str, name: str) -> None:
        """Remove a file if it exists, or a link, but not the file behind it."""
        with suppress(FileNotFoundError):
            (self._inside(folder) / PurePosixPath(name).name).unlink()

    def remove(self, folder: str) -> None:
        """Remove a folder, as far as possible."""
        shutil.rmtree(self.root / folder, ignore_errors=True)

    def check(self) -> None:
        """Do nothing: the first attempt makes the folder."""

    def problem(self) -> str | None:
        """Why nothing can be stored in the folder, or `None`."""
        there = next(folder for folder in (self.root, *self.root.parents) if folder.exists())
        if there == self.root and not there.is_dir():
            return "its folder is a file"
        return None if os.access(there, os.W_OK | os.X_OK) else "its folder cannot be written"

    def _inside(self, folder: str) -> Path:
        """A folder of the storage; raises FileNotFoundError if a link leads out of the storage."""
        inside = (self.root / folder).resolve()
        if inside != self.root.resolve() / folder:
            raise FileNotFoundError(errno.ENOENT, "no such folder in the storage", folder)
        return inside

    def _path(self, folder: str, name: str) -> Path:
        """The path of a file; raises FileNotFoundError if a link leads out of its folder."""
        inside = (self.root / folder).resolve()
        path = (inside / name).resolve()
        if not inside.is_relative_to(self.root.resolve()) or path.parent != inside:
            raise FileNotFoundError(errno.ENOENT, "no such file in the storage", f"{folder}/{name}")
        return path


Storage = Folder | Bucket


def opened(where: Path | str) -> Storage:
    """The storage at a folder or a bucket's URL; raises ValueError, which does not show secrets."""
    found = parsed(where) if isinstance(where, str) else where
    return Folder(found) if isinstance(found, Path) else Bucket(found)


def parsed(url: str) -> Path | Address:
    """Parse the storage's path, file:// URL or s3:// URL; raises ValueError."""
    if url.startswith("file://"):
        return Path(unquote(url.removeprefix("file://")))
    if "://" not in url:
        return Path(url)
    return _address(url)
