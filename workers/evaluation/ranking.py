"""The neighbours of images by the cosine or the distance: exact, in chunks, and ordered as deep as metrics ask for."""

from typing import NamedTuple

import torch
from torch import Tensor

from workers.evaluation import neighbours as nearest
from workers.evaluation import ties

CHUNK = 2**23  # similarities held at a time: 32 MiB of float32
_ROWS = 256  # with fewer a product of matrices packs the whole gallery for too little: a fifth slower at SOP's 138
_BEYOND = 15  # images behind the R-th that are put in order, so that ties there come to an end


class Neighbours(NamedTuple):
    """What the neighbours of each query say, [queries] and in the order of the images.

    A query is an image with another of its class among those that it is compared with; R is their number. Images whose
    cosines differ by no more than `ties.tolerance` are tied and in random order. There are no queries where an
    embedding is not finite, and the mean over none is NaN.
    """

    closer: Tensor
    """The number of images of other classes that are closer than the closest of its own, beyond the tolerance."""
    tied: Tensor
    """The number of those that are tied with the closest of its own."""
    own: Tensor
    """The number of images of its own class that are so, the closest included."""
    sec_rank: Tensor
    """1 + the number of all images that are strictly closer than the closest of its own, by the letter of SEC's code:
    without a tolerance, and with a cosine of 0 for the query itself, which is of its own class, unless there is a
    gallery."""
    average_precision: Tensor
    """The expectation of (1/R) sum over j <= R of precision(j) relevant(j), float64."""
    precision: Tensor
    """The expectation of the share of the R nearest that are of its class, float64."""

    @classmethod
    def blank(cls, queries: int = 0, device: torch.device | None = None) -> "Neighbours":
        """Of so many queries, zero; or of none."""
        counts, shares = [torch.int64] * 4, [torch.float64] * 2
        return cls(*(torch.zeros(queries, dtype=dtype, device=device) for dtype in (*counts, *shares)))

    def hit_rate(self, k: int) -> Tensor:
        """How likely one of a query's class is among its k nearest, float64."""
        return ties.hit_rate(self.closer, self.tied, self.own, k)


class Gallery:
    """The images that queries are compared with: rows [n, d] of classes [n], ordered by class.

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


def rows_of(chunk: int, gallery: int) -> int:
    """How many queries are compared with a gallery of so many images at a time, in `chunk` similarities.

    Up to twice as many are held where that makes the rows enough.
    """
    return max(chunk // gallery, min(_ROWS, 2 * chunk // gallery))


class Similarity(NamedTuple):
    """Rows of two sets of images whose products, -1 to 1, are the larger the nearer two images are."""

    queries: Tensor
    """[n, d]."""
    gallery: Tensor
    """[m, d], of the same images where these are compared with one another."""
    tolerance: float
    """By how much two products may differ and yet be tied."""
    sec: bool = True
    """Whether `sec_rank` takes the product of a query with itself as 0, as SEC's code does with cosines."""

    @classmethod
    def cosine(cls, unit: Tensor, gallery: Tensor | None = None) -> "Similarity":
        """The cosine of unit embeddings."""
        return cls(unit, unit if gallery is None else gallery, ties.tolerance(unit.dtype))

    @classmethod
    def euclidean(cls, raw: Tensor, gallery: Tensor | None = None) -> "Similarity":
        """1 - d^2 / 2R^2, where d is the distance of raw embeddings and R at least the largest one from their mean.

        d^2 = |f|^2 + |g|^2 - 2fg is the product of rows with two more columns, in float64. With all embeddings on a
        sphere about 0 it is the cosine. Embeddings that are rounded by e = 16 epsilons of |f| give d^2 that are off by
        up to 2ed + e^2, which is the tolerance for the typical |f| and d: the medians, so that one image far from all
        others ties nothing.
        """
        both = raw if gallery is None else torch.cat([raw, gallery])
        mean = both.mean(dim=0, dtype=torch.float64)
        squares = (both.double() - mean).square().sum(dim=1)
        rounding = ties.tolerance(raw.dtype) * float(both.double().norm(dim=1).median())
        error = rounding * (2 * float(squares.median()) ** 0.5 + rounding)
        largest = max(float(squares.max()), 4 * error) or 1.0  # where all is rounding, the products are near 1
        tolerance = max(error / (2 * largest), ties.tolerance(torch.float64))

        def rows(values: Tensor, *, query: bool) -> Tensor:
            centred = (values.double() - mean) / largest**0.5
            half = centred.square().sum(dim=1, keepdim=True) / 2
            ends = (1 - half, torch.ones_like(half)) if query else (torch.ones_like(half), -half)
            return torch.cat([centred, *ends], dim=1)

        others = rows(raw if gallery is None else gallery, query=False)
        return cls(rows(raw, query=True), others, tolerance, sec=False)


def neighbours(
    similarity: Similarity, classes: Tensor, gallery: Tensor | None = None, chunk: int = CHUNK
) -> Neighbours:
    """What the neighbours of images of `classes` [n] say.

    They are compared with the images of the `gallery`, whose classes [m] it gives, or else with one another: an image
    is then no neighbour of itself. `chunk` is the number of similarities that are held at a time, see `rows_of`.
    """
    unit = similarity.queries
    within = Gallery(similarity.gallery, classes if gallery is None else gallery)
    relevant = within.size(classes) - int(gallery is None)
    queries = (relevant > 0).nonzero()[:, 0]
    if not len(queries):
        return Neighbours.blank()
    # Queries of like R share a chunk, since a chunk is as deep as its largest R.
    queries = queries[relevant[queries].argsort(descending=True, stable=True)]

    # Made before all that is large: small tensors between those keep freed memory from being used again.
    answers, known = Neighbours.blank(len(queries), unit.device), torch.zeros_like(queries, dtype=torch.bool)
    rows = rows_of(chunk, len(within.unit))
    room: Tensor | None = None
    # The whole gallery is put in order where ties at the R-th place reach beyond what was at first.
    for whole, size in ((False, rows), (True, rows // 4)):
        left, room = (~known).nonzero()[:, 0], None  # the former one is freed first
        room = nearest.room(min(max(1, size), len(left)), unit, within.unit)
        for places in torch.split(left, max(1, size)) if len(left) else ():
            some = queries[places]
            itself = within.columns[some] if gallery is None else None
            chosen = similarity._replace(queries=unit[some])
            part, known[places] = _neighbours_of(chosen, classes[some], itself, within, room, whole=whole)
            for column, values in zip(answers, part, strict=True):
                column[places] = values
    return Neighbours(*(column[queries.argsort()] for column in answers))


def _neighbours_of(
    chosen: Similarity, classes: Tensor, itself: Tensor | None, gallery: Gallery, room: Tensor | None, *, whole: bool
) -> tuple[Neighbours, Tensor]:
    """What the neighbours of the `chosen` queries say, and for which the ties at the R-th place are known.

    `itself` is the column of each in the gallery, if it is there; `room` is written over. All are known where the
    `whole` gallery is ordered.
    """
    similarity = nearest.cosines(chosen.queries, gallery.unit, room)
    if itself is not None:
        similarity.scatter_(1, itself[:, None], nearest.NOWHERE)
    own = _take_own(similarity, classes, gallery)
    best, tolerance = own.amax(dim=1, keepdim=True), chosen.tolerance
    closer = nearest.above(similarity, best + tolerance)
    tied = nearest.at_least(similarity, best - tolerance) - closer
    tied_own = nearest.at_least(own, best - tolerance)
    bound = best.clamp(min=0) if itself is not None and chosen.sec else best
    sec_rank = 1 + _strictly_closer(similarity, bound, best, closer, tied)

    relevant = gallery.size(classes) - int(itself is not None)
    deepest, every = int(relevant.max()), own.shape[1] + similarity.shape[1]
    depth = every if whole else min(deepest + 1 + min(_BEYOND, deepest // 8), every)
    order = nearest.in_order(own, nearest.largest(similarity, min(depth, similarity.shape[1])), depth)
    units = nearest.units(tolerance, similarity.dtype)
    average, precision = _expected(*order, relevant, units)
    settled = torch.full_like(relevant, depth == every, dtype=torch.bool) | ~ties.cut(order[0], relevant, units)
    return Neighbours(closer, tied, tied_own, sec_rank, average, precision), settled


def _take_own(similarity: Tensor, classes: Tensor, gallery: Gallery) -> Tensor:
    """Take the images of the queries' own classes out of `similarity` [b, n], where `NOWHERE` is left.

    Gives their similarities, [b, largest class]; those that a smaller class lacks are `NOWHERE`.
    """
    size = gallery.size(classes)[:, None]
    along = torch.arange(int(size.max()), device=similarity.device)
    absent = along >= size
    columns = gallery.starts[classes][:, None] + along.where(~absent, 0)
    own = similarity.gather(1, columns).masked_fill_(absent, nearest.NOWHERE)
    similarity.scatter_(1, columns, nearest.NOWHERE)
    return own


def _strictly_closer(similarity: Tensor, bound: Tensor, best: Tensor, closer: Tensor, tied: Tensor) -> Tensor:
    """The number of images of other classes above `bound` [b, 1], from those counted around the `best` where it can."""
    found, other = closer.clone(), (tied > 0) | (bound > best)[:, 0]
    if bool(other.any()):
        found[other] = nearest.above(similarity[other], bound[other])
    return found


def _expected(cosines: Tensor, own: Tensor, relevant: Tensor, tolerance: int) -> tuple[Tensor, Tensor]:
    """Average precision and precision at R of rows of whole cosines in order, [b, n]."""
    places = torch.arange(1, cosines.shape[1] + 1, device=cosines.device)
    hits = own & (places <= relevant[:, None])
    above = own.cumsum(dim=1, dtype=torch.int32)
    precisions = (above / places.double()).mul_(hits)
    groups = ties.groups(cosines, own, above, relevant, tolerance)
    tied = groups.places(len(places))
    hits.view(-1).index_fill_(0, tied, False)
    precisions.view(-1).index_fill_(0, tied, 0.0)
    own_ones, their_precisions = groups.expected(relevant)
    share = nearest.count(hits).double().index_add_(0, groups.row, own_ones)
    average = precisions.sum(dim=1).index_add_(0, groups.row, their_precisions)
    return average / relevant, share / relevant
