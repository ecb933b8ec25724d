"""The files of pretrained weights that anyone may have: where they are offered, by which hash, and where they lie."""

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
    """A file that its publishers named by its hash, as torch.hub asks for: `resnet50-0676ba61.pth`."""

    name: str
    backbone: str
    addresses: tuple[str, ...]
    """Those over TLS first; whichever answers, the hash decides."""

    @property
    def checksum(self) -> Checksum:
        """The beginning of its SHA-256."""
        return Checksum("sha256", self.name.rpartition("-")[2].partition(".")[0])

    def is_at(self, path: Path) -> bool:
        """Whether a path holds this very file; reads it once."""
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
"""What `pretrained: true` of each backbone loads: torchvision's first weights, and Caffe's BN-Inception converted."""

State = Literal["ok", "missing", "wrong"]


class WeightsFinding(NamedTuple):
    """What a data root has of a published file."""

    file: PublishedWeights
    path: Path
    state: State
    found: str = ""
    """The hash of a wrong file."""


def of(name: str) -> PublishedWeights:
    """A file by its name or its backbone; raises DataMissingError with those there are."""
    for one in FILES:
        if name in (one.name, one.backbone):
            return one
    known = ", ".join(f"{one.backbone} ({one.name})" for one in FILES)
    raise DataMissingError(f"no file of weights is named {name!r}; there are {known}")


def look_up(root: Path, file: PublishedWeights) -> WeightsFinding:
    """Whether the data root holds the file, by its hash; reads it once."""
    path = root / FOLDER / file.name
    if not path.is_file():
        return WeightsFinding(file, path, "missing")
    found = file.checksum.of(path)
    return (
        WeightsFinding(file, path, "ok")
        if found.startswith(file.checksum.digest)
        else WeightsFinding(file, path, "wrong", found)
    )


def fetch_published(root: Path, file: PublishedWeights, mirrors: Sequence[str] = ()) -> Path:
    """Have the file in the data root, from one of `mirrors` (folders of files) or its own addresses; gives its path.

    Raises DownloadError where nobody answers, and DataDamagedError.
    """
    path = root / FOLDER / file.name
    download([*(f"{one.rstrip('/')}/{file.name}" for one in mirrors), *file.addresses], path, file.checksum)
    return path


def cached(root: Path, file: PublishedWeights, cache: Path) -> None:
    """Have the file in a library's cache, right by its hash: from the data root where it lies there, else fetched.

    A damaged one in the cache is replaced. Raises DataDamagedError, where that in the data root is another file, and
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
    """What to say of a file that is another than its name promises."""
    right = f"SHA-256 {here.found}, expected one that begins with {here.file.checksum.digest}"
    return DataDamagedError(f"{here.path} has {right}; fetch it again")
