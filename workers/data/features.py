"""Features of frozen networks: computed once and kept in the scratch folder."""

import hashlib
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import nn

from workers import registry
from workers.catalog import load as catalog_of
from workers.catalog.inventory import Inner, inner_of
from workers.contract import Part, Place, Recipe, Stopped, canonical_json
from workers.data.augmentation import SIGNED, Augment
from workers.data.images import DataSet, Images, content, content_hash, images_hash, onto, test_sets
from workers.data.pictures import GB, disk_limit, processors
from workers.data.scratch import UnsafeFolderError, built, named, opened, private

SETTING: Final = "METRICSWEEP_FEATURES_GB"
"""The environment variable that says how many gigabytes all features of a machine may take together."""
USUAL: Final = 32.0
"""Where it says nothing."""


def limit() -> float:
    """The bytes that all features of a machine may take; raises ValueError."""
    return disk_limit(SETTING, USUAL, "above 0", lambda gigabytes: gigabytes > 0)


def make_room(aside: Path, size: int, name: str) -> None:
    """Remove what killed processes left half-written, and the longest unused features, until `size` more bytes fit.

    A training that has them open goes on with them. Raises ValueError where they never fit.
    """
    most = limit()
    if size > most:
        raise ValueError(
            f"backbone.of: {name} would take {size / GB:.1f} GB, and {SETTING} allows {most / GB:g}; raise it, or "
            "train the backbone itself with `backbone_rate: 0`"
        )
    whole: list[tuple[int, int, Path]] = []
    for folder in aside.parent.iterdir():
        if folder.is_dir() and folder.name.startswith(".") and folder != aside:
            _remove_abandoned(folder)
        elif folder.is_dir() and not folder.name.startswith("."):
            with suppress(OSError):
                whole.append((folder.stat().st_mtime_ns, (folder / "features").stat().st_size, folder))
    taken = sum(held for _, held, _ in whole) + size
    for _, held, folder in sorted(whole):
        if taken <= most:
            break
        shutil.rmtree(folder, ignore_errors=True)
        taken -= held


def _remove_abandoned(aside: Path) -> None:
    with suppress(Timeout), FileLock(f"{aside.with_name(aside.name[1:])}.lock", timeout=0):
        shutil.rmtree(aside, ignore_errors=True)


_TOGETHER: Final = 32
"""Images of a batch: part of what decides the last bits of features, and so of their version."""
_THREADS: Final = 16  # each of which holds the maps of a batch
_TYPES: Final = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}

Progress = Callable[[int], None]
"""Told how many images are done; may raise, which ends the work."""


class NetworkIdentity(NamedTuple):
    """Which network features are of."""

    digest: str
    """SHA-256 over the names, shapes and values of its weights and buffers."""
    origin: str | None
    """Where its weights come from, as it says itself."""


@dataclass(frozen=True)
class Network:
    """The network of a recipe whose features are taken, with all that decides the numbers."""

    part: Part
    module: nn.Module
    precision: str
    channels_last: bool
    device: torch.device

    @property
    def features(self) -> int:
        """The width of what it gives of an image."""
        return int(self.module.features)  # type: ignore[arg-type]

    @cached_property
    def identity(self) -> NetworkIdentity:
        """Which one it is."""
        found = hashlib.sha256()
        for name, value in self.module.state_dict().items():
            found.update(f"{name} {value.dtype} {[*value.shape]}".encode())
            plain = value.float() if value.dtype is torch.bfloat16 else value  # of which NumPy knows nothing
            found.update(plain.detach().cpu().numpy().tobytes())  # in the order of the shape, whatever lies in memory
        return NetworkIdentity(found.hexdigest(), getattr(self.module, "origin", None))

    def compute(self, images: Images, augment: Augment, into: np.ndarray[Any, Any], progress: Progress) -> None:
        """Write the features of all images of a split to `into`, float32 [n, features].

        Raises ValueError where features are not finite, DataDamagedError, and what `progress` raises. On the CPU as
        many batches at once as there are processors, each on one thread: so numbers do not depend on how many.
        """
        chunks = torch.split(torch.arange(len(images)), _TOGETHER)
        on_cpu = self.device.type == "cpu"
        set_threads: dict[str, Any] = {"initializer": torch.set_num_threads, "initargs": (1,)} if on_cpu else {}
        before = torch.get_num_threads()

        def one(indices: torch.Tensor) -> int:
            rows = self._of(*images.take(indices), augment)
            if not bool(rows.isfinite().all()):
                why = "; try `precision: none`" if self.precision == "fp16" else "; look at its weights"
                raise ValueError(f"backbone.of: features of {self.part.name} are not finite{why}")
            into[int(indices[0]) : int(indices[-1]) + 1] = rows.numpy()
            return len(indices)

        threads = ThreadPoolExecutor(min(processors(), _THREADS) if on_cpu else 1, "features", **set_threads)
        try:
            for future in [threads.submit(one, indices) for indices in chunks]:
                progress(future.result())
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
            torch.set_num_threads(before)

    @torch.inference_mode()
    def _of(self, images: torch.Tensor, sizes: torch.Tensor, augment: Augment) -> torch.Tensor:
        """The features [b, n] of images as an evaluation sees them, float32 on the CPU."""
        seen = augment.test(onto(self.device, images), sizes)
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        pixels = getattr(self.module, "preprocess", SIGNED)(seen).contiguous(memory_format=layout)
        kind = _TYPES[self.precision]
        with torch.autocast(self.device.type, kind or torch.bfloat16, enabled=kind is not None, cache_enabled=False):
            found: torch.Tensor = self.module(pixels)
        return found.float().cpu()


def network(recipe: Recipe, part: Part, images: Images, side: int, where: tuple[Path, Path], **more: Any) -> Network:
    """The network `part` for these images, seen with `side` pixels; `where` are the data root and the scratch folder.

    What it draws where it has no weights is the same for all trainings. Raises WeightsError, and what building a part
    raises.
    """
    device, parts = more["device"], more.get("parts")
    root, scratch = where
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        offers = {"channels": images.channels, "side": side, "root": root, "scratch": scratch}
        module: nn.Module = registry.build("backbone", part, parts, **offers)
    module = module.to(device).eval()
    if recipe.channels_last:
        module = module.to(memory_format=torch.channels_last)
    return Network(part, module, recipe.precision, recipe.channels_last, device)


_FORMAT: Final = 1  # of what is stored, and of how it is computed
_TOLD: Final = 5.0  # seconds between two lines about how far the work is

Tell = Callable[[str], None]
"""Takes a line for the log of the training."""


@dataclass
class FeatureSet:
    """A data set whose images are features [features, 1, 1]; labels, queries and pairs are those of its images."""

    train: Images
    test: Images
    content: str | None
    network: NetworkIdentity
    tests: Mapping[str, Images] = field(default_factory=dict)


def frozen(recipe: Recipe, parts: Path | None) -> Inner | None:
    """The network whose features a recipe takes in place of images; none where it takes images."""
    entry = catalog_of(parts).get("backbone", recipe.backbone.name) if recipe.backbone else None
    if entry is None or entry.facts.get("reads") != "features":
        return None
    return next((one for one in inner_of(recipe, catalog_of(parts)) if one.path.startswith("backbone.")), None)


def stored(recipe: Recipe, part: Inner, dataset: DataSet, place: Place, device: torch.device, tell: Tell) -> FeatureSet:
    """The data set as the features of a recipe's network, computed where nobody of this machine has before.

    One process computes, and others wait; both say so to `tell` and end with Stopped when asked to. What is there is
    compared with its hash, once in a process. Raises ValueError, DataDamagedError, WeightsError, UnsafeFolderError, and
    OSError on a full disk.
    """
    beside = test_sets(dataset)
    # Sorted, as in the key: recipes that name the same test sets in another order share the rows.
    splits = {"train": dataset.train, "test": dataset.test, **dict(sorted(beside.items()))}
    augment = Augment("none", stored=dataset.train.side, crop=recipe.crop)
    where = (place.data_root, place.scratch)
    net = network(recipe, part.part, dataset.train, augment.side, where, device=device, parts=place.parts)
    key = _key(part, net, dataset, augment.side)
    folder = private(place.scratch / "features") / named(part.part.name, key)
    work = _Work(net, augment, [*splits.values()], place.stop, tell)
    arrays = _opened(folder, key)
    if arrays is None:
        arrays = built(folder, lambda: _read(folder, key), lambda aside: work.write(aside, key), work.wait)
    with suppress(OSError):  # by which the longest unused ones are known
        os.utime(folder)
    counts = [len(split) for split in splits.values()]
    rows = torch.split(arrays[:, :, None, None], counts)
    seen = {
        name: replace(split, images=one, shapes=None, undecoded=None)
        for (name, split), one in zip(splits.items(), rows, strict=True)
    }
    tests = {name.removeprefix("test_"): seen[name] for name in beside}
    return FeatureSet(seen["train"], seen["test"], content(dataset), net.identity, tests)


def _key(part: Inner, net: Network, dataset: DataSet, side: int) -> str:
    """SHA-256 of all that decides the features of a data set."""
    device = net.device.type if net.device.type == "cpu" else torch.cuda.get_device_name(net.device)
    said = {
        "format": _FORMAT, "images": content_hash(dataset), "side": side,
        "tests": {name: images_hash(one) for name, one in test_sets(dataset).items()},
        "network": part.part.model_dump(mode="json"), "version": part.entry.version, "weights": net.identity.digest,
        "precision": net.precision, "channels_last": net.channels_last, "device": device, "torch": torch.__version__,
    }  # fmt: skip
    return hashlib.sha256(canonical_json(said).encode()).hexdigest()


@dataclass
class _Work:
    """The features of some splits, to be computed or waited for."""

    net: Network
    augment: Augment
    splits: Sequence[Images]
    stop: Callable[[], bool]
    tell: Tell
    done: int = 0
    said: float = -math.inf

    @property
    def name(self) -> str:
        return f"features of {self.net.part.name}"

    @property
    def images(self) -> int:
        return sum(map(len, self.splits))

    def write(self, folder: Path, key: str) -> None:
        """Compute all features into a folder."""
        shape = (self.images, self.net.features)
        size = 4 * math.prod(shape)
        make_room(folder, size, self.name)
        self._say(f"computing {self.name}: {self.images:,} images, once for this machine", now=True)
        with (folder / "features").open("wb") as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now and not a fault of the memory map later
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
        rows = np.memmap(folder / "features", "<f4", mode="r+", shape=shape)
        first = 0
        for split in self.splits:
            self.net.compute(split, self.augment, rows[first : first + len(split)], self._further)
            first += len(split)
        rows.flush()
        about = {"key": key, "digest": _digest(rows), "shape": shape, "network": self.net.part.model_dump(mode="json")}
        (folder / "about.json").write_text(json.dumps(about), "utf-8")
        self._say(f"computed {self.name}", now=True)

    def wait(self) -> None:
        """Called now and then while another process computes."""
        if self.stop():
            raise Stopped(f"stopped while it waited for {self.name}")
        self._say(f"waiting for {self.name}, which another training of this machine computes")

    def _further(self, images: int) -> None:
        self.done += images
        if self.stop():
            raise Stopped(f"stopped after {self.name}: {self.done:,} of {self.images:,} images")
        self._say(f"{self.name}: {self.done:,} of {self.images:,} images")

    def _say(self, line: str, *, now: bool = False) -> None:
        if now or time.monotonic() - self.said >= _TOLD:
            self.said = time.monotonic()
            self.tell(line)


@lru_cache(maxsize=4)
def _kept(folder: Path, key: str, _written: int) -> torch.Tensor | None:
    return _read(folder, key)


def _opened(folder: Path, key: str) -> torch.Tensor | None:
    """What is in the folder, hashed once in a process for as long as the file is the same one."""
    try:
        written = (folder / "features").stat().st_mtime_ns
    except OSError:
        return None
    return _kept(folder, key, written)


def _read(folder: Path, key: str) -> torch.Tensor | None:
    """The features in a folder, float32 [n, features]; none where there are none, or not what was written."""
    try:
        with opened(folder / "about.json") as file:
            about: dict[str, Any] = json.load(file)
        with opened(folder / "features") as file:
            rows, columns = map(int, about["shape"])
            # Copy on write: torch warns of read-only memory, and nobody can spoil what others read.
            features = np.memmap(file, "<f4", mode="c", shape=(rows, columns))
    except UnsafeFolderError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if about.get("key") != key or about.get("digest") != _digest(features):
        print(f"{folder} is damaged: computing anew", file=sys.stderr, flush=True)
        return None
    return torch.from_numpy(features)


def _digest(rows: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
