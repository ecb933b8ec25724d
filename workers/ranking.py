"""The neighbours of images, ranked by the cosine: exact, in chunks, and ordered only as deep as a metric asks for."""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

CHUNK = 2**23  # similarities held at a time: 32 MiB of float32
_ROUNDING = 8  # roundings by which all cosines of a query may differ and yet say nothing


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
    own = _take_own(similarity, classes, itself, gallery)
    highest = similarity.amax(dim=1)
    depth = own.shape[1]
    best = own[:, -1]
    closer, ahead = (_ahead_on_cpu if similarity.device.type == "cpu" else _ahead)(similarity, own)

    rank = 1 + closer.double()
    # By SEC's rule alone a network whose embeddings are all one point would have a recall of 1.
    spread = torch.maximum(best, highest) - lowest
    undecided = (spread <= _ROUNDING * torch.finfo(similarity.dtype).eps) & (highest > -math.inf)
    rank[undecided] = math.inf

    relevant = gallery.size(classes) - int(itself is not None)
    order = torch.arange(depth, 0, -1, device=own.device)  # own images stand with the closest last
    places = order + ahead
    hits = places <= relevant[:, None]
    precisions = (order / places.double()).mul_(hits)
    return Neighbours(rank, precisions.sum(dim=1) / relevant, hits.sum(dim=1) / relevant.double())


def _take_own(similarity: Tensor, classes: Tensor, itself: Tensor | None, gallery: Gallery) -> Tensor:
    """Take the images of the queries' own classes out of `similarity` [b, n], where -inf is left.

    Gives their similarities, ascending, [b, R of the largest class]; those that a smaller class lacks are -inf.
    """
    size, start = gallery.size(classes)[:, None], gallery.starts[classes][:, None]
    along = torch.arange(int(size.max()), device=similarity.device)
    absent = along >= size
    columns = start + along.where(~absent, 0)
    if itself is not None:
        absent |= columns == itself[:, None]
    own = similarity.gather(1, columns).masked_fill_(absent, -math.inf)
    similarity.scatter_(1, columns, -math.inf)
    return _sorted(own)[:, 1:] if itself is not None else _sorted(own)


def _sorted(values: Tensor) -> Tensor:
    # numpy's sort is vectorized, and torch's carries the indices along: 30 times the time.
    return torch.from_numpy(np.sort(values.numpy(), axis=1)) if values.device.type == "cpu" else values.sort(dim=1)[0]


def _ahead(others: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """How many of `others` [b, n] are closer than the last of `own` [b, R], which ascends, [b], and how many are no
    farther than each of `own`, [b, R]: exact below R, and at least R (or n) otherwise. Overwrites `others`.
    """
    closer = (others > own[:, -1:]).sum(dim=1)
    count = min(own.shape[1], others.shape[1])
    nearest = others.topk(count, dim=1).values.flip(1)
    return closer, count - torch.searchsorted(nearest, own.contiguous())


def _ahead_on_cpu(others: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The same by numpy, whose partition and count are vectorized and whose search gains from sorted values."""
    array, values = others.numpy(), own.numpy()
    closer = np.count_nonzero(array > values[:, -1:], axis=1)
    rows, width = array.shape
    count = min(values.shape[1], width)
    array.partition(width - count, axis=1)
    nearest = np.sort(array[:, width - count :], axis=1)
    found = np.empty(values.shape, dtype=np.int64)
    for row in range(rows):
        found[row] = np.searchsorted(nearest[row], values[row])
    return torch.from_numpy(closer), torch.from_numpy(count - found)
