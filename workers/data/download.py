"""Downloads: a file from the first of its addresses that gives it whole, resumed where an earlier try ended."""

import hashlib
import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from filelock import FileLock
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.contract import DataDamagedError

_BLOCK: Final = 2**20
_PATIENCE: Final = 60  # seconds without a byte
_QUICKLY: Final = 5  # seconds in which a server answers whether it has a file
_PARTIAL: Final = 206  # HTTP: the rest of a file
_BEYOND: Final = 416  # HTTP: there is no rest
_UNASKED: Final = (405, 501)  # HTTP: this server says nothing of a file but the file


class Checksum(NamedTuple):
    """What a file's publishers state of it: a hash, or its beginning."""

    algorithm: str
    """`md5`, which guards against damage alone, or `sha256`."""
    digest: str

    def of(self, path: Path) -> str:
        """The same hash of a file, whole."""
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.new(self.algorithm, usedforsecurity=False)).hexdigest()

    def __str__(self) -> str:
        return {"md5": "MD5", "sha256": "SHA-256"}.get(self.algorithm, self.algorithm)


class DownloadError(OSError):
    """No address gave the file; the message names each with its reason."""


def download(addresses: Sequence[str], path: Path, checksum: Checksum) -> None:
    """Have the file at `path`, whole or not at all: what is not yet checked lies aside, and a later try goes on there.

    Raises DownloadError where no address answers, DataDamagedError where one gave another file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
    with FileLock(path.with_name(f".{path.name}.lock")):
        if path.is_file() and checksum.of(path).startswith(checksum.digest):
            return  # another process has fetched it meanwhile
        troubles: list[Exception] = []
        for address in addresses:
            try:
                _fetched(address, aside, checksum)
                aside.replace(path)
                return
            except (OSError, http.client.HTTPException, DataDamagedError) as error:
                troubles.append(error if isinstance(error, DataDamagedError) else OSError(f"{address}: {_said(error)}"))
    damaged = next((one for one in troubles if isinstance(one, DataDamagedError)), None)
    if damaged and len(addresses) == 1:
        raise damaged
    raise DownloadError("; ".join(map(str, troubles)))


def offered(addresses: Sequence[str]) -> str:
    """Empty where one of the addresses says that it has its file, which is not fetched; else each with its reason."""
    troubles = []
    for address in addresses:
        request = urllib.request.Request(address, method="HEAD")  # noqa: S310 - see below
        try:
            urllib.request.urlopen(request, timeout=_QUICKLY).close()  # noqa: S310
            return ""
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code in _UNASKED:
                return ""
            troubles.append(f"{address}: {_said(error)}")
    return "; ".join(troubles)


def _fetched(address: str, aside: Path, checksum: Checksum) -> None:
    """The whole file aside; what a broken connection left stays for the next try, a wrong file goes."""
    resumed = aside.is_file() and aside.stat().st_size > 0
    _receive(address, aside)
    found = checksum.of(aside)
    if not found.startswith(checksum.digest) and resumed:  # the part may be of another file
        aside.unlink()
        _receive(address, aside)
        found = checksum.of(aside)
    if not found.startswith(checksum.digest):
        aside.unlink()
        wanted = f"{'' if len(checksum.digest) == len(found) else 'beginning with '}{checksum.digest}"
        raise DataDamagedError(f"{address}: the file has the {checksum} {found}, expected {wanted}; fetch it again")


def _receive(address: str, aside: Path) -> None:
    """Take in what is missing of the file."""
    known = aside.stat().st_size if aside.is_file() else 0
    print(f"fetching {address}{f' from byte {known:,} on' if known else ''}", file=sys.stderr, flush=True)
    headers = {"Range": f"bytes={known}-"} if known and address.startswith("http") else {}
    # The addresses stand in our tables, or are what the person who types the command gives.
    request = urllib.request.Request(address, headers=headers)  # noqa: S310
    try:
        reply = urllib.request.urlopen(request, timeout=_PATIENCE)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == _BEYOND and known:
            return
        raise
    with reply:
        goes_on = getattr(reply, "status", None) == _PARTIAL
        known = known if goes_on else 0
        length = reply.headers.get("Content-Length")
        total = known + int(length) if length and length.isdigit() else None
        _write(reply, aside, "ab" if goes_on else "wb", known, total)
    if total is not None and aside.stat().st_size < total:
        raise OSError(f"the connection ended after {aside.stat().st_size:,} of {total:,} bytes; try again to go on")


def _write(reply: Any, aside: Path, mode: str, known: int, total: int | None) -> None:
    bar = tqdm(total=total, initial=known, unit="B", unit_scale=True, disable=None)
    with aside.open(mode) as file, bar:
        while block := reply.read(_BLOCK):
            file.write(block)
            bar.update(len(block))


def _said(error: BaseException) -> str:
    """The reason in a few words: that of a URLError stands within it."""
    reason = getattr(error, "reason", None)
    return str(reason or error) or type(error).__name__
