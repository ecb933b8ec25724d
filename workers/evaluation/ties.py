"""Ties: images whose cosines are closer than rounding are in random order, and count as the expectation over it."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

ROUNDING = 16  # machine epsilons by which two cosines may differ and yet be tied


def tolerance(dtype: torch.dtype) -> float:
    """By how much two cosines of `dtype` may differ and yet be tied: 1.9e-6 in float32."""
    return float(ROUNDING * torch.finfo(dtype).eps)


def hit_rate(closer: Tensor, tied: Tensor, own: Tensor, k: int) -> Tensor:
    """P(an image of the own class is among the k nearest) of each query, [q] in float64.

    `closer` images of other classes are closer than the best own one, `tied` are tied with it, and so are `own` of the
    own class, itself included. All m = k - closer places that are left go to other classes with probability
    C(tied, m) / C(tied + own, m).
    """
    places = (k - closer).clamp(min=0)
    every, left = tied + own, (tied - places).clamp(min=0)
    tied_, left_, every_, rest_ = (torch.lgamma(one.double() + 1) for one in (tied, left, every, left + own))
    return 1 - (tied_ - left_ - every_ + rest_).exp().masked_fill(places > tied, 0.0)


class Groups(NamedTuple):
    """Tied images in rows that are otherwise in order, [g] each; places count from 0."""

    row: Tensor
    first: Tensor
    """The place of the first: as many images are closer."""
    size: Tensor
    found: Tensor
    """How many images of the own class are closer."""
    own: Tensor
    """How many of the group are of the own class."""

    def places(self, width: int) -> Tensor:
        """The place of every image of every group, of all rows in one that are `width` long."""
        starts = self.row * width + self.first - (self.size.cumsum(dim=0) - self.size)
        return starts.repeat_interleave(self.size).add_(torch.arange(int(self.size.sum()), device=starts.device))

    def expected(self, relevant: Tensor) -> tuple[Tensor, Tensor]:
        """What each adds to the number of own images among the R nearest, and to the sum of precisions at these.

        R is `relevant` of its row. By McSherry and Najork 2008: each place of a group holds an own image with
        probability own / size, and is then preceded in its group by a share of (own - 1) / (size - 1) of own ones.
        """
        within = (relevant[self.row] - self.first).minimum(self.size)
        places = torch.arange(1, int(relevant.max()) + 1, device=relevant.device)
        harmonic = pad((1 / places.double()).cumsum(dim=0), (1, 0))
        inverses = harmonic[self.first + within] - harmonic[self.first]  # sum of 1 / place over those within R
        before = (self.own - 1) / (self.size - 1).clamp(min=1).double()
        precisions = (self.found + 1) * inverses + before * (within - (self.first + 1) * inverses)
        share = self.own / self.size.double()
        return share * within, share * precisions


def groups(cosines: Tensor, own: Tensor, above: Tensor, relevant: Tensor, tolerance: int) -> Groups:
    """The groups of tied images of the own class and others that begin among the R = `relevant` nearest.

    `cosines` [b, n] are whole numbers, largest first; `own` [b, n] says which are of the own class, and `above` [b, n]
    how many up to each are. The best own image is tied with all that are within the tolerance of it; then the best own
    one that is left, and so on.
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


def cut(cosines: Tensor, relevant: Tensor, tolerance: int) -> Tensor:
    """Whether ties at the R-th place may go on behind the end of `cosines` [b, n], as above and with n > R: [b]."""
    found = cosines[:, -2] - cosines[:, -1] <= tolerance
    rows = found.nonzero()[:, 0]
    close = cosines[rows, :-1] - cosines[rows, 1:] <= tolerance
    places = torch.arange(1, cosines.shape[1], device=cosines.device)
    found[rows] = (close | (places < relevant[rows, None])).all(dim=1)
    return found


class _Order(NamedTuple):
    """Rows as of `groups`, one behind the other."""

    cosines: Tensor
    own: Tensor
    above: Tensor
    tolerance: int

    def own_before(self, place: Tensor) -> Tensor:
        """How many images before a place in its row are of the own class."""
        return self.above[place].long() - self.own[place].long()

    def own_in(self, spans: Tensor) -> Tensor:
        """How many images in the `spans` [2, s] are."""
        return self.above[spans[1] - 1] - self.own_before(spans[0])

    def divided(self, spans: Tensor, ends: Tensor) -> Tensor:
        """Where the groups in the `spans` [2, s] begin and end, of such as begin before the `ends`: [2, g]."""
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
        """Where the group around the next image of the own class begins and ends, [2, s]; both at `end` without one."""
        before = self.own_before(begin)
        best = _first(begin, end, lambda place: self.above[place] > before)
        cosine = self.cosines[best.minimum(end - 1)]
        first = _first(begin, best, lambda place: self.cosines[place] <= cosine + self.tolerance)
        last = _first(best, end, lambda place: self.cosines[place] < cosine - self.tolerance)
        return torch.stack([first.where(best < end, end), last])


def _first(begin: Tensor, end: Tensor, holds: Callable[[Tensor], Tensor]) -> Tensor:
    """The first place from `begin` on where `holds`, which does so from some place on; `end` where it never does."""
    low, high = begin, end
    for _ in range(int((end - begin).max()).bit_length()):
        middle = (low + high) // 2
        inside, held = low < high, holds(middle.minimum(end - 1))
        low, high = low.where(~inside | held, middle + 1), high.where(~(inside & held), middle)
    return low
