"""Exact nearest neighbours by cosine or distance, in chunks; ties count by their expectation."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

NOWHERE = -1.5  # stands for a cosine that is not there, such as a query's with itself: below every cosine
_BLOCK = 64  # similarities of which only the largest is looked at, at first
_LINE = 16  # float32 in a cache line
_MASK = 2**20  # comparisons held at a time: 1 MiB, which stays in a core's cache
_WHOLE = {torch.float32: (torch.int32, 29), torch.float64: (torch.int64, 60)}  # and bits behind the point

ROUNDING = 16  # machine epsilons by which two cosines may differ and yet be tied

CHUNK = 2**23  # similarities held at a time: 32 MiB of float32
_ROWS = 256  # with fewer a product of matrices packs the whole gallery for too little: a fifth slower at SOP's 138
_BEYOND = 15  # images behind the R-th that are put in order, so that ties there come to an end


class Neighbours(NamedTuple):
    """Counts of relevant neighbours of each query, [queries], from which ranking metrics are computed.

    A query is an image with another of its class among those that it is compared with; R is their number. Images whose
    cosines differ by at most `tie_tolerance` are tied, in random order. If an embedding is not finite there are no
    queries, and the mean over none is NaN.
    """

    closer: Tensor
    """The number of images of other classes that are closer, by more than the tolerance, than the closest own one."""
    tied: Tensor  # the number of images of other classes that are tied with the closest own one
    own: Tensor  # the number of images of its class that are tied with the closest own one, including it
    sec_rank: Tensor
    """1 + the number of images strictly closer than the closest own one, exactly as in SEC's code: without tolerance,
    and with a cosine of 0 for the query itself, which counts as its own class unless there is a gallery."""
    average_precision: Tensor  # the expectation of (1/R) sum over j <= R of precision(j) relevant(j), float64
    precision: Tensor  # the expectation of the share of the R nearest that are of its class, float64

    @classmethod
    def blank(cls, queries: int = 0, device: torch.device | None = None) -> "Neighbours":
        """Zero counts for a number of queries."""
        counts, shares = [torch.int64] * 4, [torch.float64] * 2
        return cls(*(torch.zeros(queries, dtype=dtype, device=device) for dtype in (*counts, *shares)))

    def hit_rate(self, k: int) -> Tensor:
        """The probability for each query that an image of its class is among its k nearest, float64.

        All m = k - closer remaining places go to other classes with probability C(tied, m) / C(tied + own, m).
        """
        places = (k - self.closer).clamp(min=0)
        every, left = self.tied + self.own, (self.tied - places).clamp(min=0)
        counts = (self.tied, left, every, left + self.own)
        tied, missed, all_, rest = (torch.lgamma(count.double() + 1) for count in counts)
        return 1 - (tied - missed - all_ + rest).exp().masked_fill(places > self.tied, 0.0)


class Similarity(NamedTuple):
    """Rows of two sets of images whose products, -1 to 1, are larger the nearer two images are."""

    queries: Tensor
    gallery: Tensor  # the same images if these are compared with one another
    tolerance: float  # the difference of products up to which they are tied
    sec: bool = True
    """Whether `sec_rank` takes the product of a query with itself as 0, as SEC's code does with cosines."""

    @classmethod
    def cosine(cls, unit: Tensor, gallery: Tensor | None = None) -> "Similarity":
        return cls(unit, unit if gallery is None else gallery, tie_tolerance(unit.dtype))

    @classmethod
    def euclidean(cls, raw: Tensor, gallery: Tensor | None = None) -> "Similarity":
        """1 - d^2 / 2R^2, with the distance d of raw embeddings, and R at least the largest distance from their mean.

        d^2 = |f|^2 + |g|^2 - 2fg is the product of rows with two more columns, in float64. If all embeddings lie on a
        sphere about 0, it is the cosine. Embeddings rounded by e = 16 epsilons of |f| give d^2 with errors up to 2ed +
        e^2. This is the tolerance for the typical |f| and d, their medians, so that an outlier does not cause ties.
        """
        both = raw if gallery is None else torch.cat([raw, gallery])
        mean = both.mean(dim=0, dtype=torch.float64)
        squares = (both.double() - mean).square().sum(dim=1)
        rounding = tie_tolerance(raw.dtype) * float(both.double().norm(dim=1).median())
        error = rounding * (2 * float(squares.median()) ** 0.5 + rounding)
        largest = max(float(squares.max()), 4 * error) or 1.0  # where all is rounding, the products are near 1
        tolerance = max(error / (2 * largest), tie_tolerance(torch.float64))

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
    """Finds the nearest neighbours of images with `classes` [n], and counts those of the same class.

    They are compared with the images of the `gallery`, given by its classes [m], or else with one another, except with
    themselves. `chunk` is the number of similarities in memory, see `rows_of`.
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
        room = scratch_room(min(max(1, size), len(left)), unit, within.unit)
        for places in torch.split(left, max(1, size)) if len(left) else ():
            some = queries[places]
            itself = within.columns[some] if gallery is None else None
            chosen = similarity._replace(queries=unit[some])
            part, known[places] = _neighbours_of(chosen, classes[some], itself, within, room, whole=whole)
            for column, values in zip(answers, part, strict=True):
                column[places] = values
    return Neighbours(*(column[queries.argsort()] for column in answers))


def nearest(similarity: Similarity, queries: Tensor, *, among: bool, chunk: int = CHUNK) -> Tensor:
    """The place in the gallery of the image that is nearest to each of the `queries`, indices of images; int64 [q].

    Of equally near images it is the first. With `among`, the queries are images of the gallery, and do not find
    themselves.
    """
    found = torch.empty_like(queries)
    rows = max(1, rows_of(chunk, len(similarity.gallery)))
    for places in torch.split(torch.arange(len(queries), device=queries.device), rows):
        products = similarity.queries[queries[places]] @ similarity.gallery.T
        if among:
            products.scatter_(1, queries[places, None], NOWHERE)
        found[places] = products.argmax(dim=1)
    return found


class Gallery:
    """The images that queries are compared with: rows [n, d] of classes [n], ordered by class.

    In this order the images of a class are contiguous columns, and no mask of all pairs is needed.
    """

    def __init__(self, unit: Tensor, classes: Tensor) -> None:
        order = classes.argsort(stable=True)
        self.unit = unit[order]
        self.sizes = classes.bincount()
        self.starts = self.sizes.cumsum(dim=0) - self.sizes
        self.columns = torch.empty_like(order)
        self.columns[order] = torch.arange(len(order), device=order.device)

    def size(self, classes: Tensor) -> Tensor:
        """The number of images of each of `classes`, [b]; 0 for a class that is not in the gallery."""
        known = classes < len(self.sizes)
        return torch.where(known, self.sizes[torch.where(known, classes, 0)], 0)


def rows_of(chunk: int, gallery: int) -> int:
    """How many queries are compared with a gallery of that many images at a time, with `chunk` similarities.

    Up to twice as many similarities are used to get enough rows.
    """
    return max(chunk // gallery, min(_ROWS, 2 * chunk // gallery))


def scratch_room(rows: int, unit: Tensor, gallery: Tensor) -> Tensor | None:
    """The buffer [rows, n] for `cosines`, with rows aligned to cache lines, which makes products a third faster; None
    on a GPU and in float64.
    """
    if unit.device.type != "cpu" or unit.dtype != torch.float32:
        return None
    return unit.new_empty(rows, -(-len(gallery) // _LINE) * _LINE)[:, : len(gallery)]


def _neighbours_of(
    chosen: Similarity, classes: Tensor, itself: Tensor | None, gallery: Gallery, room: Tensor | None, *, whole: bool
) -> tuple[Neighbours, Tensor]:
    """The neighbours of the `chosen` queries, and for which of them the ties at the R-th place are complete.

    `itself` is the column of each in the gallery, if it is there; `room` is overwritten. With the `whole` gallery in
    order, all are complete.
    """
    similarity = cosines(chosen.queries, gallery.unit, room)
    if itself is not None:
        similarity.scatter_(1, itself[:, None], NOWHERE)
    own = _take_own(similarity, classes, gallery)
    best, tolerance = own.amax(dim=1, keepdim=True), chosen.tolerance
    closer = above(similarity, best + tolerance)
    tied = above(similarity, best - tolerance, or_equal=True) - closer
    tied_own = above(own, best - tolerance, or_equal=True)
    bound = best.clamp(min=0) if itself is not None and chosen.sec else best
    sec_rank = 1 + _strictly_closer(similarity, bound, best, closer, tied)

    relevant = gallery.size(classes) - int(itself is not None)
    deepest, every = int(relevant.max()), own.shape[1] + similarity.shape[1]
    depth = every if whole else min(deepest + 1 + min(_BEYOND, deepest // 8), every)
    order = in_order(own, largest(similarity, min(depth, similarity.shape[1])), depth)
    units = round(tolerance * 2.0 ** _WHOLE[similarity.dtype][1])
    average, precision = _expected(*order, relevant, units)
    settled = torch.full_like(relevant, depth == every, dtype=torch.bool) | ~_cut_ties(order[0], relevant, units)
    return Neighbours(closer, tied, tied_own, sec_rank, average, precision), settled


def cosines(unit: Tensor, gallery: Tensor, into: Tensor | None) -> Tensor:
    """The cosines [b, n] of unit embeddings [b, d] and [n, d], written into the first rows of the buffer `into`."""
    return unit @ gallery.T if into is None else torch.mm(unit, gallery.T, out=into[: len(unit)])


def _take_own(similarity: Tensor, classes: Tensor, gallery: Gallery) -> Tensor:
    """Replace the images of the queries' own classes in `similarity` [b, n] by `NOWHERE`.

    Returns their similarities, [b, largest class], filled up with `NOWHERE`.
    """
    size = gallery.size(classes)[:, None]
    along = torch.arange(int(size.max()), device=similarity.device)
    absent = along >= size
    columns = gallery.starts[classes][:, None] + along.where(~absent, 0)
    own = similarity.gather(1, columns).masked_fill_(absent, NOWHERE)
    similarity.scatter_(1, columns, NOWHERE)
    return own


def above(values: Tensor, bound: Tensor, *, or_equal: bool = False) -> Tensor:
    """The number of values in each row [b, n] that are above its `bound` [b, 1], or also equal to it.

    On a CPU it uses NumPy, since torch compares a row with its bound one by one.
    """
    if values.device.type != "cpu":
        return (values >= bound if or_equal else values > bound).sum(dim=1)
    compare = np.greater_equal if or_equal else np.greater
    found = torch.empty(len(values), dtype=torch.int64)

    def work(some: slice) -> None:
        rows, width = values[some].numpy(), values.shape[1]
        mask = np.zeros((len(rows), -(-width // 8) * 8), dtype=np.bool_)
        compare(rows, bound[some].numpy(), out=mask[:, :width])
        found[some] = torch.from_numpy(_trues(mask))

    size = max(1, _MASK // max(1, values.shape[1]))
    _each([slice(first, first + size) for first in range(0, len(values), size)], work)
    return found


def _trues(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The number of true values in each row [b, n], with n a multiple of 8: eight at a time, in the bytes of a word."""
    words = mask.view(np.int64)
    if not words.size:
        return np.zeros(len(mask), dtype=np.int64)
    # A byte holds the sum of 255 at most.
    sums = np.add.reduceat(words, np.arange(0, words.shape[1], 255), axis=1)
    found: npt.NDArray[np.int64] = sums.view(np.uint8).sum(axis=1, dtype=np.int64)
    return found


def _each(parts: Sequence[Any], work: Callable[[Any], None]) -> None:
    """Apply `work` to all `parts`, in as many threads as torch has; NumPy releases Python's lock."""
    threads = min(torch.get_num_threads(), len(parts))
    if threads < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))


def _strictly_closer(similarity: Tensor, bound: Tensor, best: Tensor, closer: Tensor, tied: Tensor) -> Tensor:
    """The number of images of other classes above `bound` [b, 1], taken from the counts around `best` if possible."""
    found, other = closer.clone(), (tied > 0) | (bound > best)[:, 0]
    if bool(other.any()):
        found[other] = above(similarity[other], bound[other])
    return found


def in_order(own: Tensor, others: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of the rows of two blocks of cosines together, [b, count] in whole units, largest first.

    Also whether each is of `own`, [b, count]; of equal values `others` come first. Overwrites both.
    """
    keys = _nearest(_keys(own, others), count)
    mine = keys & 1 == 0
    return keys.bitwise_right_shift_(1), mine


def _nearest(keys: Tensor, count: int) -> Tensor:
    """The `count` largest of each row, largest first; may reorder `keys`."""
    if keys.device.type != "cpu":
        return keys.topk(count, dim=1).values
    first = keys.shape[1] - count

    def order(rows: npt.NDArray[Any]) -> None:
        rows.partition(first, axis=1)
        rows[:, first:].sort(axis=1)

    _by_rows(keys, order)
    return keys[:, first:].flip(1)


def count(mask: Tensor) -> Tensor:
    """The number of true values in each row [b, n]."""
    if mask.device.type != "cpu":
        return mask.sum(dim=1)
    # torch's sum of booleans takes several times as long as the comparison that they come from.
    return torch.from_numpy(np.count_nonzero(mask.numpy(), axis=1))


def _by_rows(values: Tensor, work: Callable[[npt.NDArray[Any]], None]) -> None:
    _each(np.array_split(values.numpy(), torch.get_num_threads()), work)


def _keys(own: Tensor, others: Tensor) -> Tensor:
    """Cosines as fixed-point integers, much finer than their rounding; overwrites both.

    The last bit, 0 for `own`, shows the block, so that sorting needs no indices.
    """
    whole, point = _WHOLE[own.dtype]
    keys = torch.empty(len(own), own.shape[1] + others.shape[1], dtype=whole, device=own.device)
    keys[:, : own.shape[1]] = own.mul_(2.0**point)
    keys[:, own.shape[1] :] = others.mul_(2.0**point)
    keys.bitwise_left_shift_(1)
    keys[:, own.shape[1] :] += 1
    return keys


def largest(values: Tensor, count: int) -> Tensor:
    """Values of each row [b, n] that include the `count` largest, in any order; may reorder `values`."""
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


def _expected(cosines: Tensor, own: Tensor, relevant: Tensor, tolerance: int) -> tuple[Tensor, Tensor]:
    """Average precision and precision at R of ordered rows of integer cosines, [b, n]."""
    places = torch.arange(1, cosines.shape[1] + 1, device=cosines.device)
    hits = own & (places <= relevant[:, None])
    above = own.cumsum(dim=1, dtype=torch.int32)
    precisions = (above / places.double()).mul_(hits)
    groups = tied_groups(cosines, own, above, relevant, tolerance)
    tied = groups.places(len(places))
    hits.view(-1).index_fill_(0, tied, False)
    precisions.view(-1).index_fill_(0, tied, 0.0)
    own_ones, their_precisions = groups.expected(relevant)
    share = count(hits).double().index_add_(0, groups.row, own_ones)
    average = precisions.sum(dim=1).index_add_(0, groups.row, their_precisions)
    return average / relevant, share / relevant


class Groups(NamedTuple):
    """Groups of tied images in ordered rows, [g] each; places count from 0."""

    row: Tensor
    first: Tensor  # the place of the first image, and so the number of closer images
    size: Tensor
    found: Tensor  # the number of closer images of the own class
    own: Tensor  # the number of images of the own class in the group

    def places(self, width: int) -> Tensor:
        """The place of every image of every group, in all rows of length `width` concatenated."""
        starts = self.row * width + self.first - (self.size.cumsum(dim=0) - self.size)
        return starts.repeat_interleave(self.size).add_(torch.arange(int(self.size.sum()), device=starts.device))

    def expected(self, relevant: Tensor) -> tuple[Tensor, Tensor]:
        """What each group adds to the number of own images among the R nearest, and to the sum of precisions at these.

        R is `relevant` of its row. By McSherry and Najork 2008: each place of a group has an own image with probability
        own / size, and then a share of (own - 1) / (size - 1) of the images before it in the group are own ones.
        """
        within = (relevant[self.row] - self.first).minimum(self.size)
        places = torch.arange(1, int(relevant.max()) + 1, device=relevant.device)
        harmonic = pad((1 / places.double()).cumsum(dim=0), (1, 0))
        inverses = harmonic[self.first + within] - harmonic[self.first]  # sum of 1 / place over those within R
        before = (self.own - 1) / (self.size - 1).clamp(min=1).double()
        precisions = (self.found + 1) * inverses + before * (within - (self.first + 1) * inverses)
        share = self.own / self.size.double()
        return share * within, share * precisions


def tied_groups(cosines: Tensor, own: Tensor, above: Tensor, relevant: Tensor, tolerance: int) -> Groups:
    """The groups of tied images of the own class and others that begin among the R = `relevant` nearest.

    `cosines` [b, n] are integers, largest first; `own` [b, n] marks the own class, and `above` [b, n] counts own images
    up to each place. The best own image is tied with all images within the tolerance; then the next best own image that
    is left, and so on.
    """
    width = cosines.shape[1]
    order = _Order(cosines.flatten(), own.flatten(), above.flatten(), tolerance)
    pairs = (cosines[:, :-1] - cosines[:, 1:] <= tolerance).flatten().nonzero()[:, 0]
    # Groups lie in runs of such pairs, of which few have images of both sorts; places are those of all rows in one.
    closer = pairs + pairs // (width - 1)
    starts = closer.diff(prepend=closer.new_tensor([-2])) > 1
    spans = torch.stack([closer[starts], closer[starts.roll(-1)] + 2])
    row = spans[0] // width
    ends, owned = row * width + relevant[row], order.own_in(spans)
    mixed = (owned > 0) & (owned < spans[1] - spans[0]) & (spans[0] < ends)
    spans, ends = spans[:, mixed], ends[mixed]
    undivided = order.cosines[spans[0]] - order.cosines[spans[1] - 1] <= tolerance  # as are most
    spans = torch.cat([spans[:, undivided], order.divided(spans[:, ~undivided], ends[~undivided])], dim=1)
    row = spans[0] // width
    return Groups(row, spans[0] - row * width, spans[1] - spans[0], order.own_before(spans[0]), order.own_in(spans))


class _Order(NamedTuple):
    """The concatenated rows of `tied_groups`."""

    cosines: Tensor
    own: Tensor
    above: Tensor
    tolerance: int

    def own_before(self, place: Tensor) -> Tensor:
        """The number of own images before a place in its row."""
        return self.above[place].long() - self.own[place].long()

    def own_in(self, spans: Tensor) -> Tensor:
        """The number of own images in the `spans` [2, s]."""
        return self.above[spans[1] - 1] - self.own_before(spans[0])

    def divided(self, spans: Tensor, ends: Tensor) -> Tensor:
        """Begin and end, [2, g], of the groups in the `spans` [2, s] that begin before the `ends`."""
        found = [spans[:, :0]]
        while spans.shape[1]:
            # One group of each span at a time.
            groups = self._around(*spans)
            there = (groups[0] < groups[1]) & (groups[0] < ends)
            found.append(groups[:, there])
            left = there & (groups[1] < spans[1])
            spans, ends = torch.stack([groups[1], spans[1]])[:, left], ends[left]
        return torch.cat(found, dim=1)

    def _around(self, begin: Tensor, end: Tensor) -> Tensor:
        """Begin and end, [2, s], of the group around the next own image; both are `end` if there is none."""
        before = self.own_before(begin)
        best = _first_place(begin, end, lambda place: self.above[place] > before)
        cosine = self.cosines[best.minimum(end - 1)]
        first = _first_place(begin, best, lambda place: self.cosines[place] <= cosine + self.tolerance)
        last = _first_place(best, end, lambda place: self.cosines[place] < cosine - self.tolerance)
        return torch.stack([first.where(best < end, end), last])


def _first_place(begin: Tensor, end: Tensor, holds: Callable[[Tensor], Tensor]) -> Tensor:
    """The first place from `begin` on where `holds` is true, if it is monotonic; `end` if it never is."""
    low, high = begin, end
    for _ in range(int((end - begin).max()).bit_length()):
        middle = (low + high) // 2
        inside, held = low < high, holds(middle.minimum(end - 1))
        low, high = low.where(~inside | held, middle + 1), high.where(~(inside & held), middle)
    return low


def _cut_ties(cosines: Tensor, relevant: Tensor, tolerance: int) -> Tensor:
    """Whether ties at the R-th place may continue after the end of `cosines` [b, n], n > R: [b]."""
    found = cosines[:, -2] - cosines[:, -1] <= tolerance
    rows = found.nonzero()[:, 0]
    close = cosines[rows, :-1] - cosines[rows, 1:] <= tolerance
    places = torch.arange(1, cosines.shape[1], device=cosines.device)
    found[rows] = (close | (places < relevant[rows, None])).all(dim=1)
    return found


def tie_tolerance(dtype: torch.dtype) -> float:
    """The difference up to which two cosines of `dtype` are tied: 1.9e-6 in float32."""
    return float(ROUNDING * torch.finfo(dtype).eps)
