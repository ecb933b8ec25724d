"""Features of frozen networks, computed once and stored in the scratch folder."""

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
from workers.data.scratch import UnsafeFolderError, allocate, built, named, opened, private

SETTING: Final = "METRICSWEEP_FEATURES_GB"
"""The environment variable for the maximal gigabytes of all features of a machine."""
USUAL: Final = 32.0
"""The default."""

TOGETHER: Final = 32  # the images of a batch. It affects the last bits of features, and so is part of their version.
_THREADS: Final = 16  # each of which holds the maps of a batch
_TYPES: Final = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}

Progress = Callable[[int], None]
"""Receives the number of images that are done; may raise to stop the work."""

_FORMAT: Final = 1  # of what is stored, and of how it is computed
_REPORTED: Final = 5.0  # seconds between two lines about the progress

Log = Callable[[str], None]
"""Receives a line for the log of the training."""


class NetworkIdentity(NamedTuple):
    """What identifies the frozen network of stored features: a hash of its weights, and their origin."""

    digest: str  # SHA-256 over names, shapes and values of its weights and buffers
    origin: str | None  # the origin of its weights, if it states one


@dataclass
class FeatureSet:
    """A data set whose images are features [features, 1, 1], with the labels, queries and pairs of the images."""

    train: Images
    test: Images
    content: str | None
    network: NetworkIdentity
    tests: Mapping[str, Images] = field(default_factory=dict)


def stored(recipe: Recipe, part: Inner, dataset: DataSet, place: Place, device: torch.device, log: Log) -> FeatureSet:
    """The data set as features of the recipe's frozen network, from the scratch folder or computed now.

    One process computes and others wait; both report to `log`, and raise Stopped if asked to stop. Stored features are
    compared with their hash once per process. Raises ValueError, DataDamagedError, WeightsError, UnsafeFolderError, and
    OSError on a full disk.
    """
    test_splits = test_sets(dataset)
    # Sorted as in the key, so that the order of test sets in a recipe does not matter.
    splits = {"train": dataset.train, "test": dataset.test, **dict(sorted(test_splits.items()))}
    augment = Augment("none", stored=dataset.train.side, crop=recipe.crop)
    net = network_of(recipe, part.part, dataset.train.channels, augment.side, place, device)
    key = _key(part, net, dataset, augment.side)
    folder = private(place.scratch / "features") / named(part.part.name, key)
    work = _Work(net, augment, [*splits.values()], place.stop, log)
    arrays = _opened(folder, key)
    if arrays is None:
        arrays = built(folder, lambda: _read(folder, key), lambda aside: work.write(aside, key), work.wait)
    with suppress(OSError):  # for `_make_room`
        os.utime(folder)
    counts = [len(split) for split in splits.values()]
    rows = torch.split(arrays[:, :, None, None], counts)
    features = {
        name: replace(split, images=of_split, shapes=None, undecoded=None)
        for (name, split), of_split in zip(splits.items(), rows, strict=True)
    }
    tests = {name.removeprefix("test_"): features[name] for name in test_splits}
    return FeatureSet(features["train"], features["test"], content(dataset), net.identity, tests)


@dataclass(frozen=True)
class FrozenNetwork:
    """The frozen network of a recipe that computes features, with everything that affects their numbers."""

    part: Part
    module: nn.Module
    precision: str
    channels_last: bool
    device: torch.device

    @cached_property
    def identity(self) -> NetworkIdentity:
        digest = hashlib.sha256()
        for name, value in self.module.state_dict().items():
            digest.update(f"{name} {value.dtype} {[*value.shape]}".encode())
            plain = value.float() if value.dtype is torch.bfloat16 else value  # NumPy has no bfloat16
            digest.update(plain.detach().cpu().numpy().tobytes())  # in logical order, not that of memory
        return NetworkIdentity(digest.hexdigest(), getattr(self.module, "origin", None))

    def compute(self, images: Images, augment: Augment, into: np.ndarray[Any, Any], progress: Progress) -> None:
        """Write the features of all images of a split to `into`, float32 [n, features].

        Raises ValueError if features are not finite, DataDamagedError, and what `progress` raises. On the CPU, each
        processor computes a batch on one thread, so that numbers do not depend on their count.
        """
        chunks = torch.split(torch.arange(len(images)), TOGETHER)
        on_cpu = self.device.type == "cpu"
        set_threads: dict[str, Any] = {"initializer": torch.set_num_threads, "initargs": (1,)} if on_cpu else {}
        before = torch.get_num_threads()

        def compute(indices: torch.Tensor) -> int:
            rows = self.rows(*images.take(indices), augment)
            if not bool(rows.isfinite().all()):
                why = "; try `precision: none`" if self.precision == "fp16" else "; look at its weights"
                raise ValueError(f"backbone.of: features of {self.part.name} are not finite{why}")
            into[int(indices[0]) : int(indices[-1]) + 1] = rows.numpy()
            return len(indices)

        threads = ThreadPoolExecutor(min(processors(), _THREADS) if on_cpu else 1, "features", **set_threads)
        try:
            for future in [threads.submit(compute, indices) for indices in chunks]:
                progress(future.result())
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
            torch.set_num_threads(before)

    @torch.inference_mode()
    def rows(self, images: torch.Tensor, sizes: torch.Tensor | None, augment: Augment) -> torch.Tensor:
        """Computes the features [b, n] of images as an evaluation sees them, float32 on the CPU."""
        seen = augment.test(onto(self.device, images), sizes)
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        pixels = getattr(self.module, "preprocess", SIGNED)(seen).contiguous(memory_format=layout)
        kind = _TYPES[self.precision]
        with torch.autocast(self.device.type, kind or torch.bfloat16, enabled=kind is not None, cache_enabled=False):
            found: torch.Tensor = self.module(pixels)
        return found.float().cpu()


def network_of(
    recipe: Recipe, part: Part, channels: int, side: int, place: Place, device: torch.device
) -> FrozenNetwork:
    """Builds the frozen network `part` for images with `side` pixels; random weights are equal in all trainings.

    Raises WeightsError, and what building a part raises.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        offers = {"channels": channels, "side": side, "root": place.data_root, "scratch": place.scratch}
        module: nn.Module = registry.build("backbone", part, place.parts, **offers)
    module = module.to(device).eval()
    if recipe.channels_last:
        module = module.to(memory_format=torch.channels_last)
    return FrozenNetwork(part, module, recipe.precision, recipe.channels_last, device)


def _key(part: Inner, net: FrozenNetwork, dataset: DataSet, side: int) -> str:
    """SHA-256 of everything that decides the features of a data set."""
    device = net.device.type if net.device.type == "cpu" else torch.cuda.get_device_name(net.device)
    facts = {
        "format": _FORMAT, "images": content_hash(dataset), "side": side,
        "tests": {name: images_hash(images) for name, images in test_sets(dataset).items()},
        "network": part.part.model_dump(mode="json"), "version": part.entry.version, "weights": net.identity.digest,
        "precision": net.precision, "channels_last": net.channels_last, "device": device, "torch": torch.__version__,
    }  # fmt: skip
    return hashlib.sha256(canonical_json(facts).encode()).hexdigest()


@dataclass
class _Work:
    """The features of some splits, to be computed or waited for."""

    net: FrozenNetwork
    augment: Augment
    splits: Sequence[Images]
    stop: Callable[[], bool]
    log: Log
    done: int = 0
    reported: float = -math.inf

    def __post_init__(self) -> None:
        self.name = f"features of {self.net.part.name}"
        self.images = sum(map(len, self.splits))

    def write(self, folder: Path, key: str) -> None:
        """Compute all features into a folder."""
        shape = (self.images, int(self.net.module.features))  # type: ignore[arg-type]
        size = 4 * math.prod(shape)
        _make_room(folder, size, self.name)
        self._log(f"computing {self.name}: {self.images:,} images, once for this machine", now=True)
        allocate(folder / "features", size)
        rows = np.memmap(folder / "features", "<f4", mode="r+", shape=shape)
        first = 0
        for split in self.splits:
            self.net.compute(split, self.augment, rows[first : first + len(split)], self._further)
            first += len(split)
        rows.flush()
        about = {"key": key, "digest": _digest(rows), "shape": shape, "network": self.net.part.model_dump(mode="json")}
        (folder / "about.json").write_text(json.dumps(about), "utf-8")
        self._log(f"computed {self.name}", now=True)

    def wait(self) -> None:
        """Called regularly while another process computes."""
        if self.stop():
            raise Stopped(f"stopped while it waited for {self.name}")
        self._log(f"waiting for {self.name}, which another training of this machine computes")

    def _further(self, images: int) -> None:
        self.done += images
        if self.stop():
            raise Stopped(f"stopped after {self.name}: {self.done:,} of {self.images:,} images")
        self._log(f"{self.name}: {self.done:,} of {self.images:,} images")

    def _log(self, line: str, *, now: bool = False) -> None:
        if now or time.monotonic() - self.reported >= _REPORTED:
            self.reported = time.monotonic()
            self.log(line)


def _make_room(aside: Path, size: int, name: str) -> None:
    """Remove half-written features of killed processes, and the least recently used ones, until `size` more bytes fit.

    Running trainings keep the removed files open. Raises ValueError if the features never fit, or for an invalid limit.
    """
    most = disk_limit(SETTING, USUAL, "above 0", lambda gigabytes: gigabytes > 0)
    if size > most:
        raise ValueError(
            f"backbone.of: {name} would take {size / GB:.1f} GB, and {SETTING} allows {most / GB:g}; raise it, or "
            "train the backbone itself with `backbone_rate: 0`"
        )
    whole: list[tuple[int, int, Path]] = []
    for folder in aside.parent.iterdir():
        if folder.is_dir() and folder.name.startswith(".") and folder != aside:
            with suppress(Timeout), FileLock(f"{folder.with_name(folder.name[1:])}.lock", timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
        elif folder.is_dir() and not folder.name.startswith("."):
            with suppress(OSError):
                whole.append((folder.stat().st_mtime_ns, (folder / "features").stat().st_size, folder))
    taken = sum(held for _, held, _ in whole) + size
    for _, held, folder in sorted(whole):
        if taken <= most:
            break
        shutil.rmtree(folder, ignore_errors=True)
        taken -= held


def _digest(rows: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()


def _opened(folder: Path, key: str) -> torch.Tensor | None:
    """The stored features, hashed once per process as long as the file stays the same."""
    try:
        written = (folder / "features").stat().st_mtime_ns
    except OSError:
        return None
    return _kept(folder, key, written)


@lru_cache(maxsize=4)
def _kept(folder: Path, key: str, _written: int) -> torch.Tensor | None:
    return _read(folder, key)


def _read(folder: Path, key: str) -> torch.Tensor | None:
    """The stored features, float32 [n, features]; None if they are missing or damaged."""
    try:
        with opened(folder / "about.json") as file:
            about: dict[str, Any] = json.load(file)
        with opened(folder / "features") as file:
            rows, columns = map(int, about["shape"])
            # Copy on write: torch warns about read-only memory, and nobody can change what others read.
            features = np.memmap(file, "<f4", mode="c", shape=(rows, columns))
    except UnsafeFolderError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if about.get("key") != key or about.get("digest") != _digest(features):
        print(f"{folder} is damaged: computing anew", file=sys.stderr, flush=True)
        return None
    return torch.from_numpy(features)


def frozen(recipe: Recipe, parts: Path | None) -> Inner | None:
    """The frozen network whose features a recipe uses in place of images; None if it uses images."""
    entry = catalog_of(parts).get("backbone", recipe.backbone.name) if recipe.backbone else None
    if entry is None or entry.facts.get("reads") != "features":
        return None
    return next((part for part in inner_of(recipe, catalog_of(parts)) if part.path.startswith("backbone.")), None)
