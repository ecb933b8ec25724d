"""The neighbours of images, ranked by the cosine: exact, in chunks, and ordered only as deep as a metric asks for."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

CHUNK = 2**23  # similarities held at a time: 32 MiB of float32
_BLOCK = 64  # similarities of which only the largest is looked at, at first
_ROUNDING = 8  # roundings by which all cosines of a query may differ and yet say nothing
_NOWHERE = -1.5  # stands for the cosine of a query with itself: below every cosine, and small enough for `_keys`
_BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


class Neighbours(NamedTuple):
    """What the neighbours of each query say, [queries] in float64 and in the order of the images.

    A query is an image with another of its class among those that it is compared with; R is their number. There are no
    queries where an embedding is not finite, and the mean over none is NaN.
    """

    rank: Tensor
    """1 + the number of images of other classes that are strictly closer than the closest of its own (SEC's rule).
    Infinite where the query is equally far from all images, as when embeddings collapse to a point."""
    average_precision: Tensor
    """(1/R) sum over j <= R of precision(j) relevant(j); of equally close images those of other classes come first."""
    precision: Tensor
    """The share of the R nearest that are of its class, with ties as above."""

    @classmethod
    def none(cls) -> "Neighbours":
        """Of no queries."""
        nothing = torch.empty(0, dtype=torch.float64)
        return cls(nothing, nothing, nothing)


class Gallery:
    """The images that queries are compared with: unit embeddings [n, d] of classes [n], ordered by class.

    In that order the images of a query's class are one run of columns, and no mask of all pairs is needed.
    """

    def __init__(self, unit: Tensor, classes: Tensor) -> None:
        order = classes.argsort(stable=True)
        self.unit = unit[order]
        self.sizes = classes.bincount()
        self.starts = self.sizes.cumsum(dim=0) - self.sizes
        self.columns = torch.empty_like(order)
        self.columns[order] = torch.arange(len(order), device=order.device)

    def size(self, classes: Tensor) -> Tensor:
        """The number of images of each of `classes`, [b]; 0 for a class that the gallery lacks."""
        known = classes < len(self.sizes)
        return torch.where(known, self.sizes[torch.where(known, classes, 0)], 0)


def neighbours(
    unit: Tensor, classes: Tensor, gallery: tuple[Tensor, Tensor] | None = None, chunk: int = CHUNK
) -> Neighbours:
    """What the neighbours of images with unit embeddings [n, d] and classes [n] say.

    They are compared with the images of `gallery`, given likewise, or else with one another: an image is then no
    neighbour of itself. `chunk` is the number of similarities that are held at a time.
    """
    within = Gallery(*(gallery or (unit, classes)))
    relevant = within.size(classes) - int(gallery is None)
    queries = (relevant > 0).nonzero()[:, 0]
    if not len(queries):
        return Neighbours.none()
    # Queries of like R share a chunk, since a chunk is as deep as its largest R.
    queries = queries[relevant[queries].argsort(descending=True, stable=True)]
    rows = max(1, chunk // len(within.unit))
    parts = []
    for some in torch.split(queries, rows):
        itself = within.columns[some] if gallery is None else None
        parts.append(_neighbours_of(unit[some], classes[some], itself, within))
    back = queries.argsort()
    return Neighbours(*(torch.cat(column)[back] for column in zip(*parts, strict=True)))


def _neighbours_of(unit: Tensor, classes: Tensor, itself: Tensor | None, gallery: Gallery) -> Neighbours:
    """What the neighbours of some queries say; `itself` is the column of each in the gallery, if it is there."""
    similarity = unit @ gallery.unit.T
    lowest = similarity.amin(dim=1)
    if itself is not None:
        similarity.scatter_(1, itself[:, None], _NOWHERE)
    spread = similarity.amax(dim=1) - lowest
    own = _take_own(similarity, classes, gallery)
    best = own.amax(dim=1)
    # In int64, the default, the sum takes ten times as long.
    rank = 1 + (similarity > best[:, None]).sum(dim=1, dtype=torch.int32).double()
    # By SEC's rule alone a network whose embeddings are all one point would have a recall of 1.
    size = gallery.size(classes)
    same = spread <= _ROUNDING * torch.finfo(similarity.dtype).eps
    rank[same & (size < len(gallery.unit))] = math.inf

    relevant = size - int(itself is not None)
    depth = int(relevant.max())
    keys = torch.cat([_keys(own), _keys(_some(similarity, depth)) + 1], dim=1)
    places = torch.arange(1, depth + 1, device=keys.device)
    hits = (_nearest(keys, depth) & 1 == 0) & (places <= relevant[:, None])
    precisions = (hits.cumsum(dim=1, dtype=torch.int32) / places.double()).mul_(hits)
    found = hits.sum(dim=1, dtype=torch.int32).double()
    return Neighbours(rank, precisions.sum(dim=1) / relevant, found / relevant)


def _take_own(similarity: Tensor, classes: Tensor, gallery: Gallery) -> Tensor:
    """Take the images of the queries' own classes out of `similarity` [b, n], where `_NOWHERE` is left.

    Gives their similarities, [b, largest class]; those that a smaller class lacks are `_NOWHERE`.
    """
    size = gallery.size(classes)[:, None]
    along = torch.arange(int(size.max()), device=similarity.device)
    absent = along >= size
    columns = gallery.starts[classes][:, None] + along.where(~absent, 0)
    own = similarity.gather(1, columns).masked_fill_(absent, _NOWHERE)
    similarity.scatter_(1, columns, _NOWHERE)
    return own


def _keys(similarity: Tensor) -> Tensor:
    """Even whole numbers in the order of cosines, as wide as these; overwrites `similarity`.

    The bits of a float, read as a whole number, rise with its size. Those of a cosine are one short of the width (of
    any number below 2): the one that is left can say whose image it is, so that a sort needs to carry no indices.
    """
    bits = similarity.view(_BITS[similarity.dtype])
    sign = bits >> torch.iinfo(bits.dtype).bits - 1  # 0 or -1
    bits &= torch.iinfo(bits.dtype).max
    # Negated where the sign says so, which makes the two zeros equal.
    return bits.bitwise_xor_(sign).sub_(sign).mul_(2)


def _some(values: Tensor, count: int) -> Tensor:
    """Some of each row of `values` [b, n], with the `count` largest, in any order; may change the order of `values`."""
    width = values.shape[1]
    first, rest = width - count, width % _BLOCK
    # As many equal values as are cut off, like those taken out of two halves, are numpy's worst case by far.
    if first * 5 < count * 8:
        return values
    if count * _BLOCK * 4 < width:
        # The largest values lie in as many blocks: those with the largest maxima.
        blocks = values[:, rest:].view(len(values), -1, _BLOCK)
        chosen = blocks.amax(dim=2).topk(count, dim=1, sorted=False).indices
        largest = blocks.gather(1, chosen[:, :, None].expand(-1, -1, _BLOCK)).flatten(1)
        return torch.cat([largest, values[:, :rest]], dim=1)
    if values.device.type != "cpu":
        return values.topk(count, dim=1, sorted=False).values
    # numpy's partition and sort are vectorized; torch's carry indices along and take 10 to 30 times as long.
    _by_rows(values, lambda rows: rows.partition(first, axis=1))
    return values[:, first:].contiguous()


def _nearest(keys: Tensor, count: int) -> Tensor:
    """The `count` largest of each row, the largest first; may change the order of `keys`."""
    if keys.device.type != "cpu":
        return keys.topk(count, dim=1).values
    first = keys.shape[1] - count

    def order(rows: npt.NDArray[Any]) -> None:
        rows.partition(first, axis=1)
        rows[:, first:].sort(axis=1)

    _by_rows(keys, order)
    return keys[:, first:].flip(1)


def _by_rows(values: Tensor, work: Callable[[npt.NDArray[Any]], None]) -> None:
    """Do `work` in place on all rows, in as many threads as torch has: numpy sorts without Python's lock."""
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, np.array_split(values.numpy(), threads)))
