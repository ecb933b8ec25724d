"""The published files of pretrained weights: their addresses, hashes, and where they are."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from workers.contract import DataDamagedError, DataMissingError
from workers.data.download import Checksum, download

FOLDER: Final = "weights"
"""Below the data root."""

_TORCHVISION: Final = "https://download.pytorch.org/models"
_CADENE: Final = "data.lip6.fr/cadene/pretrainedmodels"


class PublishedWeights(NamedTuple):
    """A published weights file that is named by its hash, as in torch.hub: `resnet50-0676ba61.pth`."""

    name: str
    backbone: str
    addresses: tuple[str, ...]  # those with TLS first. The hash decides in any case.

    @property
    def checksum(self) -> Checksum:
        """The beginning of the file's SHA-256, from its name."""
        return Checksum("sha256", self.name.rpartition("-")[2].partition(".")[0])

    def is_at(self, path: Path) -> bool:
        """Whether the file at a path has the hash of these weights."""
        return path.is_file() and self.checksum.of(path).startswith(self.checksum.digest)


FILES: Final = (
    *(
        PublishedWeights(name, backbone, (f"{_TORCHVISION}/{name}",))
        for backbone, name in (
            ("alexnet", "alexnet-owt-7be5be79.pth"),
            ("googlenet", "googlenet-1378be20.pth"),
            ("mobilenet_v2", "mobilenet_v2-b0353104.pth"),
            ("resnet18", "resnet18-f37072fd.pth"),
            ("resnet50", "resnet50-0676ba61.pth"),
        )
    ),
    PublishedWeights(
        "bn_inception-52deb4733.pth",
        "bn_inception",
        tuple(f"{scheme}://{_CADENE}/bn_inception-52deb4733.pth" for scheme in ("https", "http")),
    ),
)
"""What `pretrained: true` loads: torchvision's first weights, and BN-Inception converted from Caffe."""

State = Literal["ok", "missing", "wrong"]


class WeightsFinding(NamedTuple):
    """Whether a data root has a published weights file."""

    file: PublishedWeights
    path: Path
    state: State
    found: str  # the hash of the file; empty if it is missing


def of(name: str) -> PublishedWeights:
    """The published weights file with a name or for a backbone; the DataMissingError for an unknown name lists all."""
    for file in FILES:
        if name in (file.name, file.backbone):
            return file
    known = ", ".join(f"{file.backbone} ({file.name})" for file in FILES)
    raise DataMissingError(f"no file of weights is named {name!r}; there are {known}")


def look_up(root: Path, file: PublishedWeights) -> WeightsFinding:
    """Checks by hash whether the data root has the published weights file."""
    path = root / FOLDER / file.name
    found = file.checksum.of(path) if path.is_file() else ""
    right: State = "ok" if found.startswith(file.checksum.digest) else "wrong"
    return WeightsFinding(file, path, right if found else "missing", found)


def fetch_published(root: Path, file: PublishedWeights, mirrors: Sequence[str] = ()) -> Path:
    """Downloads a published weights file into the data root, from `mirrors` (folders) or its own addresses.

    Raises DownloadError if nobody answers, and DataDamagedError.
    """
    path = root / FOLDER / file.name
    download([*(f"{mirror.rstrip('/')}/{file.name}" for mirror in mirrors), *file.addresses], path, file.checksum)
    return path


def cached(root: Path, file: PublishedWeights, cache: Path) -> None:
    """Put the file into a library's cache, from the data root or by download, and check its hash.

    A damaged file in the cache is replaced. Raises DataDamagedError if that in the data root is wrong, and
    DownloadError.
    """
    path = cache / file.name
    if file.is_at(path):
        return
    here = look_up(root, file)
    if here.state == "missing":
        download(file.addresses, path, file.checksum)
        return
    if here.state == "wrong":
        raise wrong(here)
    cache.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copyfile(here.path, aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def wrong(here: WeightsFinding) -> DataDamagedError:
    """The error for a weights file that does not match the hash in its name."""
    right = f"SHA-256 {here.found}, expected one that begins with {here.file.checksum.digest}"
    return DataDamagedError(f"{here.path} has {right}; fetch it again")
