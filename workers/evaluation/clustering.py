"""k-means on a device, with deterministic first centres."""

import math
from typing import Final, NamedTuple

import torch
from torch import Tensor

from workers.catalog.compatibility import STARTS

_ROWS: Final = 512  # of the products at a time
_FEW: Final = 12  # a part of the points; where fewer move, their products are added and not all computed anew


def products(points: Tensor) -> Tensor:
    """The products [n, n] of all pairs of `points` [n, d]; each pair is computed once."""
    number = len(points)
    held = points.new_empty(number, number)
    for at in range(0, number, _ROWS):
        some = points[at : at + _ROWS] @ points[at:].T
        held[at : at + _ROWS, at:] = some
        held[at:, at : at + _ROWS] = some.T
    return held


def descend(points: Tensor, held: Tensor, start: Tensor, iterations: int, least: float) -> tuple[Tensor, float] | None:
    """The clusters [n] and their inertia, from the points with indices `start` on; none where a cluster is empty.

    `held` are the `products` of the points. It ends when no point moves, or the centres move by `least` or less in all
    (squared), or after so many `iterations`.
    """
    squares = held.diagonal()
    near = squares[start][:, None] - 2 * held.index_select(0, start)
    clusters = near.argmin(dim=0)
    sums = torch.zeros(len(start), points.shape[1], dtype=torch.float64, device=points.device)
    sums.index_add_(0, clusters, points.double())
    sizes = clusters.bincount(minlength=len(start))
    centres, total = points[start], sums.to(points) @ points.T  # of each cluster with each point
    lowest = near.amin(dim=0)
    for _ in range(iterations):
        if not bool(sizes.all()):
            return None
        means = (sums / sizes[:, None]).to(points)
        shift, centres = float((means - centres).square().sum()), means
        near = torch.addcmul(means.square().sum(dim=1)[:, None], total, (1 / sizes)[:, None], value=-2)
        lowest = near.amin(dim=0)
        moved = (near.gather(0, clusters[None])[0] > lowest).nonzero()[:, 0]
        if len(moved):
            left, joined = clusters[moved], near.index_select(1, moved).argmin(dim=0)
            clusters = clusters.index_copy(0, moved, joined)
            rows = points.index_select(0, moved).double()
            sums.index_add_(0, joined, rows).index_add_(0, left, rows, alpha=-1)
            sizes = clusters.bincount(minlength=len(start))
            if len(moved) * _FEW > len(points):
                total = sums.to(points) @ points.T
            else:
                theirs = held.index_select(0, moved)
                total.index_add_(0, joined, theirs).index_add_(0, left, theirs, alpha=-1)
        if not len(moved) or shift <= least:
            break
    return clusters, float((squares + lowest).clamp_(min=0).sum(dtype=torch.float64))


_HELD_DISTANCES: Final = 2**23  # distances held at a time: 32 MiB of float32, and about three times that in copies
_BLOCK: Final = 2**14  # draws of float64 made at a time


def first_centres(
    points: Tensor, count: int, starts: int, generator: torch.Generator, held: Tensor | None = None
) -> Tensor:
    """The indices [starts, count] of points [n, d] where k-means of `count` clusters starts.

    The first is any point; each further one is the best of 2 + ln(count) that are drawn by their squared distance from
    the nearest centre so far: the one that leaves the smallest sum of these. All draws come from the `generator`, which
    is the CPU's, so that they are the same on every device. `held` are the products [n, n] of all pairs of points,
    where they are known.
    """
    trials = 2 + int(math.log(count))
    at_once = max(1, _HELD_DISTANCES // (trials * len(points)))
    # Of each start by itself, so that a start is the same however many run at once.
    draws = [_Draws(generator, trials) for _ in range(starts)]
    return torch.cat([_together(points, count, draws[at : at + at_once], held) for at in range(0, starts, at_once)])


class _Draws:
    """The random numbers of one start, [0, 1) in float64."""

    def __init__(self, generator: torch.Generator, trials: int) -> None:
        seed = int(torch.randint(2**62, (), generator=generator))
        self._generator = torch.Generator().manual_seed(seed)
        self._trials = trials
        self._block = torch.empty(0, trials, dtype=torch.float64)
        self._next = 0

    def one(self) -> Tensor:
        """[trials]: what one centre is chosen by."""
        if self._next == len(self._block):
            rows = max(1, _BLOCK // self._trials)
            self._block = torch.rand(rows, self._trials, generator=self._generator, dtype=torch.float64)
            self._next = 0
        self._next += 1
        return self._block[self._next - 1]


def _together(points: Tensor, count: int, draws: list["_Draws"], held: Tensor | None) -> Tensor:
    """The centres of some starts side by side: one product with all points serves the candidates of all of them."""
    number, device = len(points), points.device
    squares = points.square().sum(dim=1)
    chosen = torch.empty(len(draws), count, dtype=torch.int64, device=device)
    first = torch.stack([one.one()[0] for one in draws]).to(device)
    chosen[:, 0] = (first * number).long().clamp_(max=number - 1)
    nearest = _distances(points, squares, chosen[:, 0], held)  # [starts, n], squared
    every = torch.arange(len(draws), device=device)
    for at in range(1, count):
        below = nearest.cumsum(dim=1, dtype=torch.float64)
        wanted = torch.stack([one.one() for one in draws]).to(device) * below[:, -1:]
        candidates = torch.searchsorted(below, wanted).clamp_(max=number - 1)  # [starts, trials]
        left = _distances(points, squares, candidates.flatten(), held).view(*candidates.shape, number)
        torch.minimum(left, nearest[:, None], out=left)
        best = left.sum(dim=2).argmin(dim=1, keepdim=True)
        chosen[:, at] = candidates.gather(1, best)[:, 0]
        nearest = left[every, best[:, 0]]
    return chosen


def _distances(points: Tensor, squares: Tensor, of: Tensor, held: Tensor | None) -> Tensor:
    """The squared distances [m, n] of the points with indices `of` from all points."""
    if held is None:
        found = torch.addmm(squares[None], points.index_select(0, of), points.T, alpha=-2)
    else:
        found = held.index_select(0, of).mul_(-2).add_(squares)
    return found.add_(squares[of][:, None]).clamp_(min=0)


_HELD: Final = 2**23  # products held at a time: 32 MiB of float32
_PAIRS: Final = 2**26  # products of pairs of points that are held, 256 MiB: those of Cars196's test images, not SOP's
_ROUNDING: Final = 16  # roundings of the largest square within which a point lies on its centre
_TIGHTER: Final = 1 - 1e-6  # of the inertia: what rounding alone tells apart is no better (scikit-learn's rule)


class Protocol(NamedTuple):
    """What a clustering depends on beside its points."""

    starts: int = STARTS
    iterations: int = 300
    tolerance: float = 1e-4
    """An end: all centres together moved by less (squared) than this part of the points' mean variance."""


SEC: Final = Protocol()
"""That of SEC's code: scikit-learn's k-means with the defaults of its time."""


def k_means(points: Tensor, count: int, seed: int, protocol: Protocol = SEC) -> Tensor:
    """The cluster of each of `points` [n, d]: [n], 0 to below `count`, on their device.

    Draws from no global generator. Raises ValueError for more clusters than points, and for points that are not finite.
    """
    if not 1 <= count <= len(points):
        raise ValueError(f"k-means: expected 1 to {len(points):,} clusters for as many points, found {count:,}")
    if not bool(points.isfinite().all()):
        raise ValueError("k-means: the points are not finite")
    # About their mean, products and what they are taken from are smaller, and so is what rounding takes away.
    centred = (points - points.mean(dim=0, dtype=torch.float64).to(points)).float().contiguous()
    variance = float(centred.double().var(dim=0, correction=0).mean())
    held = products(centred) if len(centred) ** 2 <= _PAIRS else None
    ends = protocol.iterations, protocol.tolerance * variance
    best: tuple[float, Tensor] | None = None
    for start in first_centres(centred, count, protocol.starts, torch.Generator().manual_seed(seed), held):
        clustering = None if held is None else descend(centred, held, start, *ends)
        clusters, inertia = clustering or _Descent(centred, centred[start]).run(*ends)
        if best is None or inertia < best[0] * _TIGHTER:
            best = inertia, clusters
    if best is None:
        raise ValueError(f"k-means: expected at least 1 start, found {protocol.starts}")
    return best[1]


class _Descent:
    """Lloyd's algorithm from some centres, holding little.

    Most centres soon stand still, so an iteration looks only at what can have changed. Where a point's own centre came
    no farther, no other centre that stood still is nearer now: the point is compared with the centres that moved, and
    all others with every centre. The clusters are those of comparing all with all.
    """

    def __init__(self, points: Tensor, centres: Tensor) -> None:
        self._points, self._centres = points, centres.clone()
        self._squares = points.square().sum(dim=1)
        self._sums = torch.zeros_like(centres, dtype=torch.float64)
        self._sizes = torch.zeros(len(centres), dtype=torch.int64, device=points.device)
        self._every = torch.arange(len(centres), device=points.device)
        # `near`: ||centre||^2 - 2 <point, centre>, the squared distance of each point less its own square.
        self._near, self._clusters, _ = self._nearest(self._every)
        self._count(self._every_point(), self._clusters, 1)

    def run(self, iterations: int, least: float) -> tuple[Tensor, float]:
        """The clusters [n] and their inertia: the sum of the squared distances from their centres."""
        changed = self._every
        for _ in range(iterations):
            changed = _distinct(torch.cat([changed, self._fill()]))
            shift = self._follow(changed)
            changed = self._assign(changed)
            if not len(changed) or shift <= least:
                break
        return self._clusters, float((self._squares + self._near).clamp_(min=0).sum(dtype=torch.float64))

    def _every_point(self) -> Tensor:
        return torch.arange(len(self._points), device=self._points.device)

    def _nearest(
        self, among: Tensor, own: Tensor | None = None, points: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of all points, or those with the indices `points`, how near the nearest of the centres `among` is, and which.

        Also how near each one's `own` centre is: its place in `among`, or -1, where the number means nothing.
        """
        centres = self._centres[among]
        squares = centres.square().sum(dim=1, keepdim=True)
        columns = max(1, _HELD // len(among))
        parts: list[tuple[Tensor, Tensor, Tensor]] = []
        for some in torch.split(self._every_point() if points is None else points, columns):
            chunk = self._points if len(some) == len(self._points) else self._points.index_select(0, some)
            products = torch.addmm(squares, centres, chunk.T, alpha=-2)
            near, place = products.min(dim=0)
            theirs = near if own is None else products.gather(0, own.index_select(0, some).clamp_(min=0)[None])[0]
            parts.append((near, among[place], theirs))
        near, clusters, theirs = (torch.cat(column) for column in zip(*parts, strict=True))
        return near, clusters, theirs

    def _assign(self, changed: Tensor) -> Tensor:
        """Put each point to its nearest centre after those of `changed` moved; the clusters that lost or won any."""
        places = torch.full_like(self._sizes, -1)
        places[changed] = torch.arange(len(changed), device=changed.device)
        own = places[self._clusters]
        near, clusters, own_near = self._nearest(changed, own)
        stays = (own < 0) & (near >= self._near)
        near, clusters = self._near.where(stays, near), self._clusters.where(stays, clusters)
        if len(changed) < len(self._centres):
            unsure = ((own >= 0) & (own_near > self._near)).nonzero()[:, 0]
            if len(unsure):
                near[unsure], clusters[unsure], _ = self._nearest(self._every, points=unsure)
        self._near = near
        moved = (clusters != self._clusters).nonzero()[:, 0]
        return self._transfer(moved, clusters[moved])

    def _transfer(self, points: Tensor, to: Tensor) -> Tensor:
        """Let points join other clusters; the clusters that changed by it."""
        left = self._clusters[points]
        self._count(points, left, -1)
        self._count(points, to, 1)
        self._clusters = self._clusters.index_copy(0, points, to)
        return _distinct(torch.cat([left, to]))

    def _count(self, points: Tensor, clusters: Tensor, sign: int) -> None:
        """Add points to the sums and sizes of clusters, or take them away; float64, so that nothing of them stays."""
        rows = max(1, _HELD // (2 * self._points.shape[1]))
        for some, into in zip(torch.split(points, rows), torch.split(clusters, rows), strict=True):
            self._sums.index_add_(0, into, self._points.index_select(0, some).double(), alpha=sign)
            self._sizes.index_add_(0, into, torch.full_like(into, sign))

    def _follow(self, changed: Tensor) -> float:
        """Move the centres of the clusters `changed` to the means of their points; the sum of their squared moves."""
        filled = changed[self._sizes[changed] > 0]
        means = (self._sums[filled] / self._sizes[filled, None]).to(self._centres)
        shift = float((means - self._centres[filled]).square().sum())
        self._centres[filled] = means
        return shift

    def _fill(self) -> Tensor:
        """Give each empty cluster one of the points that lie farthest from their centres; the clusters that changed.

        That is scikit-learn's rule; here a point stays where it is alone, or on its centre up to rounding.
        """
        empty = (self._sizes == 0).nonzero()[:, 0]
        if not len(empty):
            return empty
        far = self._squares + self._near
        least = _ROUNDING * torch.finfo(far.dtype).eps * self._squares.max()
        most, points = far.topk(len(empty))
        changed = [empty[:0]]
        for at in (most > least).nonzero()[:, 0].tolist():
            point, cluster = points[at : at + 1], empty[at : at + 1]
            if int(self._sizes[self._clusters[point]]) > 1:
                changed.append(self._transfer(point, cluster))
        return torch.cat(changed)


def _distinct(clusters: Tensor) -> Tensor:
    found: Tensor = torch.unique(clusters)
    return found
