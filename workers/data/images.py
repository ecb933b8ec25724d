"""Images in memory or on disk with their labels, as data sets give them to training and evaluation."""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from workers import registry
from workers.catalog.inventory import load as catalog_of
from workers.catalog.recipe import declared
from workers.catalog.source import Entry
from workers.contract import TEST_SET, DataDamagedError, Part
from workers.data.file_content import Reading, State, below, noting

Prepared = TypeVar("Prepared", bound=tuple[torch.Tensor, ...])

_UNDONE: Final = 4  # things that were taken, beside the last one, which a GPU may not have computed with yet


class Prefetcher:
    """Prepares one thing after the other on a thread, and on a GPU on a stream of its own, beside the computation.

    Numbers are the same as without: only when something is computed differs. What the GPU has not come to yet holds
    memory, so that nothing is prepared while more than a few things wait for it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._thread = ThreadPoolExecutor(1, "prefetching")
        self._given: deque[torch.cuda.Event] = deque()  # what the GPU was told to compute before each thing was taken
        self._stream = _stream(device) if device.type == "cuda" else None
        if self._stream is not None:  # what is prepared from was copied to the GPU on the stream that is current now
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def begin(self, prepare: Callable[[], Prepared]) -> Callable[[], Prepared]:
        """Begin to prepare, after all that was begun before; gives what waits for it, and raises what it raised."""
        return partial(self._taken, self._thread.submit(self._prepared, prepare))

    def _prepared(self, prepare: Callable[[], Prepared]) -> tuple[Prepared, torch.cuda.Event | None]:
        if self._stream is None:
            return prepare(), None
        while len(self._given) > _UNDONE:
            self._given.popleft().synchronize()
        with torch.cuda.stream(self._stream):
            return prepare(), self._stream.record_event()

    def _taken(self, future: "Future[tuple[Prepared, torch.cuda.Event | None]]") -> Prepared:
        """What was prepared; the stream of the computation waits for it, and the computer does not."""
        prepared, done = future.result()
        if done is not None:
            computing = torch.cuda.current_stream(self._device)
            self._given.append(computing.record_event())
            computing.wait_event(done)
            for tensor in prepared:
                tensor.record_stream(computing)  # its memory is not given away before the computation has used it
        return prepared


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One of a device for all trainings of the process: freed memory serves again only on the stream that it was of."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def prefetcher(device: torch.device) -> Prefetcher | None:
    """That of a device, where a thread pays: the cores compute themselves where there is no GPU."""
    return Prefetcher(device) if device.type == "cuda" else None


def onto(device: torch.device, values: torch.Tensor) -> torch.Tensor:
    """`values` on a device; from the CPU to a GPU by pinned memory, so that the computer goes on meanwhile."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


@dataclass
class Look:
    """What a look has met."""

    undecoded: bool = False
    """Whether photographs were met that nobody has decoded on this machine: their pixels are not known."""


_current: ContextVar[Look | None] = ContextVar("look", default=None)


@contextmanager
def looking() -> Iterator[Look]:
    """While it lasts `decoded` gives what was decoded before, else images of one pixel, so that counts are right."""
    look = Look()
    token = _current.set(look)
    try:
        yield look
    finally:
        _current.reset(token)


def current() -> Look | None:
    """The look that lasts; none: data sets are read to be trained on."""
    return _current.get()


class PairSet(NamedTuple):
    """Pairs of a split's images that are verified, on the CPU and in the order of their file."""

    first: Tensor  # int64 [p], the number of an image
    second: Tensor  # int64 [p]
    same: Tensor  # bool [p], whether both show one class
    fold: Tensor  # int64 [p], from 0


Distractors = Mapping[int, Tensor]
"""Among whom a face is looked for: by their number n, from few to many, the images int64 [n] on the CPU."""


_TOGETHER: Final = 1024  # images that are decoded before they are hashed
_MOST: Final = 4  # data sets that stay in memory


class Undecoded(Protocol):
    """What decodes images that lie on disk as they are."""

    def decode(self, number: int, into: torch.Tensor) -> None:
        """Write the pixels of an image to `into`, uint8 [channels, height, width]."""
        ...


class Batch(NamedTuple):
    """Images picked from a split."""

    images: torch.Tensor  # uint8 [b, channels, h, w], padded right and below with zeros where shapes differ
    sizes: torch.Tensor  # int64 [b, 2] on the CPU: the height and width of each without padding


@dataclass(frozen=True)
class Images:
    """One split of a data set; its pixels may be a memory map, or lie on disk in the form of their files."""

    images: torch.Tensor  # uint8 [n, channels, side, side]; where `shapes` is given flat, one image after another
    labels: torch.Tensor  # int64 [n], contiguous from 0
    shapes: torch.Tensor | None = None
    """Of images of unequal shapes: first byte, channels, height, width; int64 [n, 4] on the CPU."""
    query: torch.Tensor | None = None
    """Where queries are searched among other images: bool [n], whether an image is a query; else all are both."""
    names: tuple[str, ...] | None = None
    """The name of each class, for people; none where the data set has only numbers."""
    pairs: PairSet | None = None
    """Where the data set says which pairs of its images are verified; those of some classes have none of them."""
    distractors: Distractors | None = None
    """Where the data set says among which of its images its queries are identified."""
    undecoded: Undecoded | None = None
    """Where images are decoded as they are taken: what does so. `images` is empty then, and the first of each of
    `shapes` is the number that it knows the image by."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    @property
    def counts(self) -> dict[str, int]:
        """How many classes, images and queries there are, and how many pairs where these are drawn up."""
        queries = 0 if self.query is None else int(self.query.sum())
        pairs = {} if self.pairs is None else {"pairs": len(self.pairs.same)}
        return {"classes": self.classes, "images": len(self), "queries": queries, **pairs}

    @property
    def channels(self) -> int:
        """1 of grey images, 3 of colour."""
        return self.images.shape[1] if self.shapes is None else int(self.shapes[0, 1])

    @property
    def side(self) -> int:
        """The pixels of the shorter side of the smallest image."""
        return min(self.images.shape[2:]) if self.shapes is None else int(self.shapes[:, 2:].min())

    def take(self, indices: torch.Tensor) -> Batch:
        """The images at `indices` (int64 [b]) on the device where they live; indices on the CPU avoid a wait."""
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
        """Begin to take the images at `indices`, by `threads` where they must be decoded; gives what ends it.

        That raises DataDamagedError where an image cannot be decoded.
        """
        if self.undecoded is None or self.shapes is None:
            return partial(self.take, indices)
        shapes = self.shapes[indices.cpu()]
        batch = self._blank(shapes)
        pieces = [
            partial(self.undecoded.decode, number, into[:, :h, :w])
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
        """The shape of all pixels: [n, channels, h, w], or where shapes differ how many there are."""
        if self.undecoded is None or self.shapes is None or not len(self):
            return [*self.images.shape]
        return [len(self), *self.shapes[0, 1:].tolist()]

    def pixels(self) -> Iterator[torch.Tensor]:
        """All pixels in order, those of some images at a time where they must be decoded."""
        if self.undecoded is None:
            yield self.images.contiguous()
            return
        for some in torch.split(torch.arange(len(self)), _TOGETHER):
            yield self.take(some).images

    def _blank(self, shapes: torch.Tensor) -> Batch:
        """Images of zeros that hold those of `shapes`; on the CPU where these must be decoded."""
        height, width = shapes[:, 2:].amax(dim=0).tolist() if len(shapes) else (0, 0)
        device = None if self.undecoded is None else "cpu"
        return Batch(self.images.new_zeros(len(shapes), self.channels, height, width, device=device), shapes[:, 2:])

    def of_classes(self, wanted: torch.Tensor) -> "Images":
        """The images of the classes `wanted` (bool [classes]), in their order and with labels contiguous from 0.

        Pixels are shared, not copied, where shapes differ or the images lie together.
        """
        kept = self.of_images(wanted[self.labels])
        renumbered = torch.cumsum(wanted, dim=0) - 1
        names = None if self.names is None else tuple(self.names[place] for place in wanted.nonzero()[:, 0].tolist())
        return replace(kept, labels=renumbered[kept.labels], names=names)

    def of_images(self, wanted: torch.Tensor) -> "Images":
        """The images that are `wanted` (bool [n]), in their order and with the labels that they have.

        Pixels are shared, not copied, where shapes differ or the images lie together.
        """
        query = None if self.query is None else self.query[wanted]
        labels = self.labels[wanted]
        if self.shapes is not None:
            shapes = self.shapes[wanted.cpu()]
            return Images(self.images, labels, shapes, query, self.names, undecoded=self.undecoded)
        places = wanted.nonzero()[:, 0]
        first, past = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        together = past - first == len(places)
        return Images(self.images[first:past] if together else self.images[wanted], labels, None, query, self.names)

    def to(self, device: torch.device) -> "Images":
        """The same on another device."""
        query = None if self.query is None else self.query.to(device)
        return replace(self, images=self.images.to(device), labels=self.labels.to(device), query=query)


class DataSet(Protocol):
    """What a part of the kind `dataset` offers.

    One with test sets beside `test` has them as `tests`, by their names; its hyper-parameter `tests` says which.
    """

    train: Images
    test: Images


def test_sets(dataset: DataSet) -> dict[str, Images]:
    """The test sets beside `test` by the names of their splits; raises ValueError where such a name is none."""
    tests: Mapping[str, Images] = getattr(dataset, "tests", {})
    for name in tests:
        if not TEST_SET.fullmatch(name) or name.endswith("separated"):
            raise ValueError(f"a test set is named in lower case, such as lfw, and not 'separated'; found {name!r}")
    return {f"test_{name}": one for name, one in tests.items()}


def read(dataset: DataSet) -> str:
    """How many images of how many classes a data set has."""
    counted = [(name, getattr(dataset, name)) for name in ("train", "test")]
    return ", ".join(f"{len(images):,} images of {images.classes:,} classes {name}" for name, images in counted)


def notes(dataset: DataSet) -> tuple[str, ...]:
    """What a data set says of its files: what it passed over and why, and what looks like a mistake."""
    return tuple(getattr(dataset, "notes", ()))


def load(part: Part, root: Path, scratch: Path, parts: Path | None = None) -> DataSet:
    """The data set, verified against its facts; the last few stay in memory, so that a warm process pays once.

    It is read anew once a file or a folder that it was read from has changed, or the code of an own one.
    """
    return _loaded(part, root, scratch, parts).dataset


def files(part: Part, root: Path, scratch: Path, parts: Path | None = None) -> set[str]:
    """The files that `load` reads, of an own data set those that it declares."""
    return _loaded(part, root, scratch, parts).reading.files


class _Loaded(NamedTuple):
    """A data set in memory, with what it was read from and how that was then."""

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
    # Whoever cannot say what an own data set reads cannot know that it would read the same again.
    if entry is None or not entry.own or "root" not in entry.asks or declared(entry, part.options):
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
        reading = below(root, declared(entry, part.options) if "root" in entry.asks else ())
        if content(dataset) is None:
            dataset.content = content_hash(dataset)  # type: ignore[attr-defined]
    return _Loaded(dataset, reading, reading.states())


def faults(dataset: DataSet, *, pixels: bool = True) -> list[str]:
    """Where the content differs from the facts `classes`, `images` and `manifest`, of those that are declared.

    A data set whose hyper-parameter `official` is false declares none: it may be a part of the official one. What a
    recipe says of the content, which such a data set keeps as `expected`, holds in any case. Without `pixels` only
    counts are compared.
    """
    official = getattr(dataset, "official", True)
    every = {"train": dataset.train, "test": dataset.test, **test_sets(dataset)}
    wrong = miscounts(dataset, {name: images.counts for name, images in every.items()}) if official else []
    expected = getattr(dataset, "expected", None) or (getattr(dataset, "manifest", None) if official else None)
    if pixels and expected is not None and not wrong and (digest := content_hash(dataset)) != expected:
        wrong.append(f"the content is {digest}, expected {expected}")
    manifests: Mapping[str, str] = getattr(dataset, "manifests", {}) if official and pixels else {}
    for name, images in getattr(dataset, "tests", {}).items():
        if name in manifests and (digest := images_hash(images)) != manifests[name]:
            wrong.append(f"the content of test set {name} is {digest}, expected {manifests[name]}")
    return wrong


def miscounts(declaring: object, found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Where the counts of each split differ from the facts `classes`, `images`, `queries` and `pairs` of a data set."""
    wrong = []
    for fact in ("classes", "images", "queries", "pairs"):
        declared: Mapping[str, int] = getattr(declaring, fact, {})
        for name, expected in declared.items():
            if name in found and found[name][fact] != expected:
                wrong.append(f"{name} has {found[name][fact]:,} {fact}, expected {expected:,}")
    return wrong


def content(dataset: DataSet) -> str | None:
    """The hash that a data set knows of its content: the one it declares, or the one it read."""
    known: str | None = getattr(dataset, "content", None) or getattr(dataset, "manifest", None)
    return known


def content_hash(dataset: DataSet) -> str:
    """SHA-256 over the decoded images and labels of `train` and `test`, whatever files they came from."""
    if known := getattr(dataset, "content", None):
        return str(known)
    digest = hashlib.sha256()
    for name in ("train", "test"):
        _hash(digest, name, getattr(dataset, name))
    return f"sha256:{digest.hexdigest()}"


def images_hash(images: Images) -> str:
    """SHA-256 over the decoded images and labels of a test set, and over its pairs where it has any."""
    digest = hashlib.sha256()
    _hash(digest, "test", images)
    for one in images.pairs or ():
        digest.update(one.contiguous().numpy().astype("<i8").tobytes())
    return f"sha256:{digest.hexdigest()}"


def _hash(digest: "hashlib._Hash", name: str, split: Images) -> None:
    digest.update(f"{name} {split.extent}".encode())
    for pixels in split.pixels():
        digest.update(pixels.numpy().data)
    digest.update(split.labels.contiguous().numpy().astype("<i8").tobytes())
