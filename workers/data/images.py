"""Images with labels, in memory or on disk, as data sets give them to training and evaluation."""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from workers import registry
from workers.catalog.inventory import Entry
from workers.catalog.recipe import declared
from workers.catalog.source import load as catalog_of
from workers.catalog.wording import counted
from workers.contract import TEST_SET, DataDamagedError, Part
from workers.data.file_content import Reading, State, below, noting
from workers.data.pictures import Form

Prepared = TypeVar("Prepared", bound=tuple[torch.Tensor, ...])

_UNDONE: Final = 4  # taken things, except the last, that a GPU may not have used yet


class Prefetcher:
    """Prepares batches in order on a thread (and for a GPU on a stream of its own) while the device computes.

    The numbers are the same as without it. On a GPU it waits when several prepared things are unused, since they hold
    memory.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._thread = ThreadPoolExecutor(1, "prefetching")
        self._given: deque[torch.cuda.Event] = deque()  # the GPU's work before each thing was taken
        self._stream = _stream(device) if device.type == "cuda" else None
        if self._stream is not None:  # the data was copied to the GPU on the current stream
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def begin(self, prepare: Callable[[], Prepared]) -> Callable[[], Prepared]:
        """Start to prepare a batch after those that were started before; returns a function that waits for it."""
        return partial(self._taken, self._thread.submit(self._prepared, prepare))

    def _prepared(self, prepare: Callable[[], Prepared]) -> tuple[Prepared, torch.cuda.Event | None]:
        if self._stream is None:
            return prepare(), None
        while len(self._given) > _UNDONE:
            self._given.popleft().synchronize()
        with torch.cuda.stream(self._stream):
            return prepare(), self._stream.record_event()

    def _taken(self, future: "Future[tuple[Prepared, torch.cuda.Event | None]]") -> Prepared:
        """The prepared thing; the computing stream waits for it, the CPU does not."""
        prepared, done = future.result()
        if done is not None:
            computing = torch.cuda.current_stream(self._device)
            self._given.append(computing.record_event())
            computing.wait_event(done)
            for tensor in prepared:
                tensor.record_stream(computing)  # so that its memory is not reused before the computation
        return prepared


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One stream per device and process: freed memory is reused only on the same stream."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def prefetcher(device: torch.device) -> Prefetcher | None:
    """A prefetcher for a GPU; None for a CPU, whose cores are busy computing."""
    return Prefetcher(device) if device.type == "cuda" else None


def onto(device: torch.device, values: torch.Tensor) -> torch.Tensor:
    """Copies tensors to a device; from CPU to GPU through pinned memory, without waiting."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


class PairSet(NamedTuple):
    """Pairs of a split's images to verify, on the CPU and in the order of their file."""

    first: Tensor  # int64 [p], the number of an image
    second: Tensor  # int64 [p]
    same: Tensor  # bool [p], whether both show one class
    fold: Tensor  # int64 [p], from 0


Distractors = Mapping[int, Tensor]
"""For each number n of distractors, from few to many, the images int64 [n] on the CPU."""

_TOGETHER: Final = 1024  # images that are decoded before they are hashed
_MOST: Final = 4  # data sets that stay in memory
_SHOWN: Final = 3  # examples of skipped images


class Batch(NamedTuple):
    """The images of a split that `Images.take` returns, with their sizes."""

    images: torch.Tensor  # uint8 [b, channels, h, w], padded right and below with zeros where shapes differ
    sizes: torch.Tensor  # int64 [b, 2] on the CPU: the height and width of each without padding


@dataclass(frozen=True)
class Images:
    """A split of a data set: images with labels; pixels may be a memory map, or files."""

    images: torch.Tensor  # uint8 [n, channels, side, side]; where `shapes` is given flat, one image after another
    labels: torch.Tensor  # int64 [n], contiguous from 0
    shapes: torch.Tensor | None = None
    """For images of different shapes: first byte, channels, height, width; int64 [n, 4] on the CPU."""
    query: torch.Tensor | None = None
    """Whether an image is a query, bool [n], if queries are searched among other images; None means that all are both.
    """
    names: tuple[str, ...] | None = None  # the name of each class, if the data set has names
    pairs: PairSet | None = None  # the pairs to verify, if the data set defines them; a subset of the classes has none
    distractors: Distractors | None = None
    """The images among which queries are identified, if the data set defines them."""
    undecoded: Callable[[int, torch.Tensor], None] | None = None
    """Decodes the image with a number into an array, uint8 [channels, height, width], when it is taken. Then `images`
    is empty, and the first of each of `shapes` is the number of the image."""
    skipped: tuple[str, ...] = ()
    """The files of a data set's split that cannot be decoded and are left out."""
    form: Form | None = None  # how the images were decoded from files; None if they come from arrays

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of classes, images and queries, and of pairs if there are any."""
        queries = 0 if self.query is None else int(self.query.sum())
        pairs = {} if self.pairs is None else {"pairs": len(self.pairs.same)}
        return {"classes": self.classes, "images": len(self), "queries": queries, **pairs}

    @property
    def channels(self) -> int:
        """The number of channels of the images: 1 if grey, 3 if in colour."""
        return self.images.shape[1] if self.shapes is None else int(self.shapes[0, 1])

    @property
    def side(self) -> int:
        """The shorter side of the smallest image, in pixels."""
        return min(self.images.shape[2:]) if self.shapes is None else int(self.shapes[:, 2:].min())

    def take(self, indices: torch.Tensor) -> Batch:
        """Returns the images at `indices` (int64 [b]) on their device; indices on the CPU avoid a wait."""
        if self.shapes is None:
            picked = self.images[onto(self.images.device, indices)]
            return Batch(picked, torch.tensor(self.images.shape[2:]).expand(len(indices), 2))
        shapes = self.shapes[indices.cpu()]
        if self.undecoded is not None:
            return self.begin(indices)()
        batch = self._blank(shapes)
        for into, (first, c, h, w) in zip(batch.images, shapes.tolist(), strict=True):
            into[:, :h, :w] = self.images[first : first + c * h * w].view(c, h, w)
        return batch

    def begin(self, indices: torch.Tensor, threads: Executor | None = None) -> Callable[[], Batch]:
        """Start to take the images at `indices`, decoding with `threads`; returns a function that waits for them.

        It raises DataDamagedError if an image cannot be decoded.
        """
        if self.undecoded is None or self.shapes is None:
            return partial(self.take, indices)
        shapes = self.shapes[indices.cpu()]
        batch = self._blank(shapes)
        pieces = [
            partial(self.undecoded, number, into[:, :h, :w])
            for into, (number, _, h, w) in zip(batch.images, shapes.tolist(), strict=True)
        ]
        waited = [piece if threads is None else threads.submit(piece).result for piece in pieces]

        def end() -> Batch:
            for piece in waited:
                piece()
            return batch

        return end

    @property
    def extent(self) -> list[int]:
        """The shape of all pixels, [n, channels, h, w], or only the number of images if shapes differ."""
        if self.undecoded is None or self.shapes is None or not len(self):
            return [*self.images.shape]
        return [len(self), *self.shapes[0, 1:].tolist()]

    def pixels(self) -> Iterator[torch.Tensor]:
        """Iterates over the pixels of all images in order, in chunks if they must be decoded."""
        if self.undecoded is None:
            yield self.images.contiguous()
            return
        for some in torch.split(torch.arange(len(self)), _TOGETHER):
            yield self.take(some).images

    def _blank(self, shapes: torch.Tensor) -> Batch:
        """Zeros for images of `shapes`, on the CPU if they must be decoded."""
        height, width = shapes[:, 2:].amax(dim=0).tolist() if len(shapes) else (0, 0)
        device = None if self.undecoded is None else "cpu"
        return Batch(self.images.new_zeros(len(shapes), self.channels, height, width, device=device), shapes[:, 2:])

    def of_classes(self, wanted: torch.Tensor) -> "Images":
        """The images of the classes `wanted` (bool [classes]), as `of_images` gives them, with labels from 0."""
        kept = self.of_images(wanted[self.labels])
        renumbered = torch.cumsum(wanted, dim=0) - 1
        names = None if self.names is None else tuple(self.names[place] for place in wanted.nonzero()[:, 0].tolist())
        return replace(kept, labels=renumbered[kept.labels], names=names)

    def of_images(self, wanted: torch.Tensor) -> "Images":
        """The images `wanted` (bool [n]), in order and with their labels.

        Pixels are shared, not copied, if shapes differ or the images are contiguous.
        """
        query = None if self.query is None else self.query[wanted]
        labels = self.labels[wanted]
        if self.shapes is not None:
            shapes = self.shapes[wanted.cpu()]
            return replace(self, labels=labels, shapes=shapes, query=query, pairs=None, distractors=None, skipped=())
        places = wanted.nonzero()[:, 0]
        first, past = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        together = past - first == len(places)
        images = self.images[first:past] if together else self.images[wanted]
        return replace(self, images=images, labels=labels, query=query, pairs=None, distractors=None, skipped=())

    def to(self, device: torch.device) -> "Images":
        query = None if self.query is None else self.query.to(device)
        return replace(self, images=self.images.to(device), labels=self.labels.to(device), query=query)


class DataSet(Protocol):
    """The interface of parts of the kind `dataset`.

    Further test sets are in `tests`, by name; the hyper-parameter `tests` selects them.
    """

    train: Images
    test: Images


def test_sets(dataset: DataSet) -> dict[str, Images]:
    """The additional test sets of a data set by the names of their splits; raises ValueError for an invalid name."""
    tests: Mapping[str, Images] = getattr(dataset, "tests", {})
    for name in tests:
        if not TEST_SET.fullmatch(name) or name.endswith("separated"):
            raise ValueError(f"a test set is named in lower case, such as lfw, and not 'separated'; found {name!r}")
    return {f"test_{name}": images for name, images in tests.items()}


def read(dataset: DataSet) -> str:
    """A log line on a data set: its numbers of images and classes."""
    counted = [(name, getattr(dataset, name)) for name in ("train", "test")]
    return ", ".join(f"{len(images):,} images of {images.classes:,} classes {name}" for name, images in counted)


def notes(dataset: DataSet) -> tuple[str, ...]:
    """What a data set reports about its files: what was skipped and why, and what looks like a mistake."""
    reported = tuple(getattr(dataset, "notes", ()))
    names = skipped(dataset)
    examples = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return (*reported, f"skipped {counted(len(names), 'damaged image')}: {examples}") if names else reported


def skipped(dataset: DataSet) -> list[str]:
    """The images of both splits that cannot be decoded and are left out."""
    return [*dataset.train.skipped, *dataset.test.skipped]


def load(part: Part, root: Path, scratch: Path, parts: Path | None = None) -> DataSet:
    """Loads a data set and checks it against its declared facts; the last few stay cached until their files or code
    change.
    """
    return _loaded(part, root, scratch, parts).dataset


def files(part: Part, root: Path, scratch: Path, parts: Path | None = None) -> set[str]:
    """The files that loading a data set reads, or that an own data set declares."""
    return _loaded(part, root, scratch, parts).reading.files


class _Loaded(NamedTuple):
    """A data set in memory, and the states of its files when it was read."""

    dataset: DataSet
    reading: Reading
    states: Mapping[str, State | None]


_kept: Final[OrderedDict[tuple[object, ...], _Loaded]] = OrderedDict()


def _loaded(part: Part, root: Path, scratch: Path, parts: Path | None) -> _Loaded:
    root, scratch = root.absolute(), scratch.absolute()
    entry = catalog_of(parts).get("dataset", part.name)
    key = part.model_dump_json(), root, scratch, parts, entry.code if entry else None
    known = _kept.pop(key, None)
    if known is None or known.reading.states() != known.states:
        known = _read(part, root, scratch, parts, entry)
    # If an own data set declares no files, nobody knows whether it would read the same again.
    if entry is None or not entry.own or "root" not in entry.inputs or declared(entry, part.options):
        _kept[key] = known
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    return known


def _read(part: Part, root: Path, scratch: Path, parts: Path | None, entry: Entry | None) -> _Loaded:
    with noting() as reading:
        dataset: DataSet = registry.build("dataset", part, parts, root=root, scratch=scratch)
    wrong = faults(dataset)
    if wrong:
        raise DataDamagedError(f"{part.name} in {root}: {'; '.join(wrong)}")
    if entry is not None and entry.own:
        reading = below(root, declared(entry, part.options) if "root" in entry.inputs else ())
        if content(dataset) is None:
            dataset.content = content_hash(dataset)  # type: ignore[attr-defined]
    return _Loaded(dataset, reading, reading.states())


def faults(dataset: DataSet, *, pixels: bool = True) -> list[str]:
    """Messages on where a data set differs from its declared facts `classes`, `images` and `manifest`.

    With `official: false` a data set declares none, since it may be a part of the official one. The `content` of a
    recipe, stored as `expected`, is always compared. Without `pixels` only counts are compared.
    """
    official = getattr(dataset, "official", True)
    every = {"train": dataset.train, "test": dataset.test, **test_sets(dataset)}
    whole = official and not skipped(dataset)  # otherwise the counts of its lists were compared
    wrong = miscounts(dataset, {name: images.counts for name, images in every.items()}) if whole else []
    expected = getattr(dataset, "expected", None) or (getattr(dataset, "manifest", None) if official else None)
    if pixels and expected is not None and not wrong and (digest := content_hash(dataset)) != expected:
        wrong.append(f"the content is {digest}, expected {expected}")
    manifests: Mapping[str, str] = getattr(dataset, "manifests", {}) if official and pixels else {}
    for name, images in getattr(dataset, "tests", {}).items():
        if name in manifests and (digest := images_hash(images)) != manifests[name]:
            wrong.append(f"the content of test set {name} is {digest}, expected {manifests[name]}")
    return wrong


def miscounts(declaring: object, found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Messages on where the counts of splits differ from the facts that a data set declares."""
    wrong = []
    for fact in ("classes", "images", "queries", "pairs"):
        declared: Mapping[str, int] = getattr(declaring, fact, {})
        for name, expected in declared.items():
            if name in found and found[name][fact] != expected:
                wrong.append(f"{name} has {found[name][fact]:,} {fact}, expected {expected:,}")
    return wrong


def content(dataset: DataSet) -> str | None:
    """The content hash that a data set declares or has read; None if it has none."""
    known: str | None = getattr(dataset, "content", None) or getattr(dataset, "manifest", None)
    return known


def content_hash(dataset: DataSet) -> str:
    """SHA-256 over the decoded images and labels of `train` and `test`."""
    if known := getattr(dataset, "content", None):
        return str(known)
    digest = hashlib.sha256()
    for name in ("train", "test"):
        _hash(digest, name, getattr(dataset, name))
    return f"sha256:{digest.hexdigest()}"


def images_hash(images: Images) -> str:
    """SHA-256 over the decoded images, labels and pairs of a test set."""
    digest = hashlib.sha256()
    _hash(digest, "test", images)
    for column in images.pairs or ():
        digest.update(column.contiguous().numpy().astype("<i8").tobytes())
    return f"sha256:{digest.hexdigest()}"


def _hash(digest: "hashlib._Hash", name: str, split: Images) -> None:
    digest.update(f"{name} {split.extent}".encode())
    for pixels in split.pixels():
        digest.update(pixels.numpy().data)
    digest.update(split.labels.contiguous().numpy().astype("<i8").tobytes())
