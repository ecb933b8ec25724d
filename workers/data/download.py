"""Downloads of data sets: resumed downloads with checksums, and safe unpacking."""

import hashlib
import http.client
import os
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

from filelock import FileLock
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.contract import DataDamagedError, DataMissingError

_BLOCK: Final = 2**20
_TIMEOUT: Final = 60  # seconds without a byte
_SHORT_TIMEOUT: Final = 5  # seconds for the answer whether a server has a file
_UNSUPPORTED: Final = (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)  # of HEAD requests


class Checksum(NamedTuple):
    """The checksum (or its beginning) that the publishers of a file state."""

    algorithm: str  # `md5`, which only protects against damage, or `sha256`
    digest: str

    def of(self, path: Path) -> str:
        """Computes the full checksum of a file by the same hash function."""
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.new(self.algorithm, usedforsecurity=False)).hexdigest()

    def __str__(self) -> str:
        return {"md5": "MD5", "sha256": "SHA-256"}.get(self.algorithm, self.algorithm)


class DownloadError(OSError):
    """No address provided the file; the message has the reason for each address."""


def download(addresses: Sequence[str], path: Path, checksum: Checksum) -> None:
    """Download a file to `path`, completely or not at all; a partial file is kept elsewhere and resumed later.

    Raises DownloadError if no address answers, DataDamagedError if one gave a wrong file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
    with FileLock(path.with_name(f".{path.name}.lock")):
        if path.is_file() and checksum.of(path).startswith(checksum.digest):
            return  # another process has downloaded it meanwhile
        troubles: list[Exception] = []
        for address in addresses:
            try:
                _fetched(address, aside, checksum)
                aside.replace(path)
                return
            except (OSError, http.client.HTTPException, DataDamagedError) as error:
                troubles.append(
                    error if isinstance(error, DataDamagedError) else OSError(f"{address}: {_reason(error)}")
                )
    damaged = next((trouble for trouble in troubles if isinstance(trouble, DataDamagedError)), None)
    if damaged and len(addresses) == 1:
        raise damaged
    raise DownloadError("; ".join(map(str, troubles)))


def offered(addresses: Sequence[str]) -> str:
    """Why none of the addresses offers its file, checked without downloading it; empty if one does."""
    troubles = []
    for address in addresses:
        request = urllib.request.Request(address, method="HEAD")  # noqa: S310 - see below
        try:
            urllib.request.urlopen(request, timeout=_SHORT_TIMEOUT).close()  # noqa: S310
            return ""
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code in _UNSUPPORTED:
                return ""
            troubles.append(f"{address}: {_reason(error)}")
    return "; ".join(troubles)


def _fetched(address: str, aside: Path, checksum: Checksum) -> None:
    """The complete file; a partial one is kept for the next try, a wrong one is deleted."""
    resumed = aside.is_file() and aside.stat().st_size > 0
    _receive(address, aside)
    found = checksum.of(aside)
    if not found.startswith(checksum.digest) and resumed:  # the partial file may have been another one
        aside.unlink()
        _receive(address, aside)
        found = checksum.of(aside)
    if not found.startswith(checksum.digest):
        aside.unlink()
        wanted = f"{'' if len(checksum.digest) == len(found) else 'beginning with '}{checksum.digest}"
        raise DataDamagedError(f"{address}: the file has the {checksum} {found}, expected {wanted}; fetch it again")


def _receive(address: str, aside: Path) -> None:
    """Download the missing part of the file."""
    known = aside.stat().st_size if aside.is_file() else 0
    print(f"fetching {address}{f' from byte {known:,} on' if known else ''}", file=sys.stderr, flush=True)
    headers = {"Range": f"bytes={known}-"} if known and address.startswith("http") else {}
    # The addresses stand in our tables, or are what the person who types the command gives.
    request = urllib.request.Request(address, headers=headers)  # noqa: S310
    try:
        reply = urllib.request.urlopen(request, timeout=_TIMEOUT)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and known:
            return
        raise
    with reply:
        goes_on = getattr(reply, "status", None) == HTTPStatus.PARTIAL_CONTENT
        known = known if goes_on else 0
        length = reply.headers.get("Content-Length")
        total = known + int(length) if length and length.isdigit() else None
        bar = tqdm(total=total, initial=known, unit="B", unit_scale=True, disable=None)
        with aside.open("ab" if goes_on else "wb") as file, bar:
            while block := reply.read(_BLOCK):
                file.write(block)
                bar.update(len(block))
    if total is not None and aside.stat().st_size < total:
        raise OSError(f"the connection ended after {aside.stat().st_size:,} of {total:,} bytes; try again to go on")


def _reason(error: BaseException) -> str:
    """The reason in a few words; a URLError contains it."""
    reason = getattr(error, "reason", None)
    return str(reason or error) or type(error).__name__


@dataclass(frozen=True)
class Archive:
    """A file of a data set to download into the folder `into` of the data root, and to unpack if it is an archive."""

    url: str
    md5: str
    into: str = "."

    @property
    def name(self) -> str:
        return self.url.partition("?")[0].rpartition("/")[2]

    @property
    def checksum(self) -> Checksum:
        """The checksum that the authors state, which only protects against damage."""
        return Checksum("md5", self.md5)


def _idx(base: str, into: str, sums: tuple[str, str, str, str]) -> tuple[Archive, ...]:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(Archive(f"{base}/{name}-ubyte.gz", md5, into) for name, md5 in zip(names, sums, strict=True))


_MNIST: Final = _idx(
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "MNIST/raw",
    (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)

SOURCES: Final[Mapping[str, tuple[Archive, ...]]] = {
    "cub200": (
        Archive(
            "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz?download=1",
            "97eceeb196236b17998738112f37df78",
        ),
    ),
    "sop": (Archive("ftp://cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip", "7f73d41a2f44250d4779881525aea32e"),),
    "cifar10": (
        Archive("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
    ),
    "cifar100": (
        Archive("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
    ),
    "omniglot": tuple(
        Archive(f"https://raw.githubusercontent.com/brendenlake/omniglot/master/python/{name}.zip", md5, "omniglot-py")
        for name, md5 in (
            ("images_background", "68d2efa1b9178cc56df9314c21c6e718"),
            ("images_evaluation", "6b91aef0f799c5bb55b94e3f2daec811"),
        )
    ),
    "mnist": _MNIST,
    "mnist_halves": _MNIST,
    "fashion_mnist": _idx(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        "FashionMNIST/raw",
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
}
"""The files of each data set that everyone may download."""

BY_HAND: Final = {
    "cars196": "its authors' site no longer offers it; put a copy of yours in the data root, in one of the layouts "
    "that its doc in the catalog names (car_ims.tgz has the MD5 d5c8f0aa497503f355e17dc7886c3f14)",
    "inshop": "its authors give it to those who accept their agreement (DeepFashion, In-shop Clothes Retrieval)",
    "casia_webface": "its authors give it to those who sign for it; InsightFace's data set zoo links to a packed "
    "copy, faces_webface_112x112, which holds lfw.bin, agedb_30.bin and cfp_fp.bin too",
    **dict.fromkeys(("lfw", "agedb30", "cfp_fp"), "it lies as a .bin beside InsightFace's packed training faces"),
    "megaface": "its authors no longer give it; put a copy of yours in the data root, with the devkit's lists",
    "imagenet": "its authors give it to those who accept their terms (image-net.org, ILSVRC2012)",
    **dict.fromkeys(("digits", "digits_halves"), "it comes with scikit-learn"),
    "packed": "it is a file of yours",
    "image_folder": "it is a folder of yours",
    "csv": "it is a file of yours",
    "torchvision_dataset": 'its class of torchvision downloads it, if it can: python -c "from torchvision import '
    "datasets; datasets.Flowers102('DATA', download=True)\"",
}
"""Why each of the other data sets must be provided by hand."""


def fetch(name: str, root: Path, sources: Mapping[str, tuple[Archive, ...]] = SOURCES) -> list[Path]:
    """Download and unpack a data set into the data root; returns the files and folders.

    Raises DataMissingError if it cannot be downloaded, OSError if the network fails, DataDamagedError for a wrong
    checksum.
    """
    if name not in sources:
        why = BY_HAND.get(name, f"no source of it is known; there are sources of {', '.join(sorted(sources))}")
        raise DataMissingError(f"{name} cannot be fetched: {why}")
    unpacked = []
    for archive in sources[name]:
        path = root / archive.into / archive.name
        if not path.is_file() or archive.checksum.of(path) != archive.md5:
            download([archive.url], path, archive.checksum)
        unpacked.append(_unpack(path, path.parent))
    return unpacked


def _extract(tar: tarfile.TarFile, folder: Path) -> None:
    """Extract members that stay within the folder, owned by us; raises TarError for others."""
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
        return
    # Python before 3.11.4, such as Debian 12's, has no such filter; here all links are refused.
    for member in tar.getmembers():
        inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
        if not inside or not (member.isreg() or member.isdir()):
            raise tarfile.TarError(f"{member.name!r} would lie outside, or is neither a file nor a folder")
        member.mode = 0o755 if member.isdir() else 0o644
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
    tar.extractall(folder)  # noqa: S202 - every member was looked at


def _unpack(path: Path, folder: Path) -> Path:
    """Unpack an archive into the folder; other files stay as they are."""
    try:
        if path.name.endswith((".tgz", ".tar.gz")):
            with tarfile.open(path) as tar:
                _extract(tar, folder)
            return folder
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)  # noqa: S202 - zipfile drops what would lead outside
            return folder
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise DataDamagedError(f"{path} cannot be unpacked; delete it and fetch it again ({error})") from error
    return path
