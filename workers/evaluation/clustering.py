"""k-means on a device, with deterministic first centres."""

import math
from typing import Final

import torch
from torch import Tensor

from workers.catalog.compatibility import STARTS

_ITERATIONS: Final = 300  # of each start, as in scikit-learn at the time of SEC's code
_TOLERANCE: Final = 1e-4  # ends when centres move by less (squared) than this part of the points' mean variance
_HELD_DISTANCES: Final = 2**23  # distances in memory: 32 MiB of float32, and about three times that in copies
_HELD: Final = 2**23  # products in memory: 32 MiB of float32
_ROUNDING: Final = 16  # roundings of the largest square within which a point lies on its centre
_TIGHTER: Final = 1 - 1e-6  # of the inertia, so that rounding does not decide (scikit-learn's rule)


def k_means(points: Tensor, count: int, seed: int, starts: int = STARTS) -> Tensor:
    """The cluster, 0 to `count` - 1, of each of `points` [n, d], by the k-means of SEC's code: [n] on their device.

    Uses no global generator. Raises ValueError for more clusters than points, and for points that are not finite.
    """
    if not 1 <= count <= len(points):
        raise ValueError(f"k-means: expected 1 to {len(points):,} clusters for as many points, found {count:,}")
    if not bool(points.isfinite().all()):
        raise ValueError("k-means: the points are not finite")
    # Centred points have smaller products, and so smaller rounding errors.
    centred = (points - points.mean(dim=0, dtype=torch.float64).to(points)).float().contiguous()
    variance = float(centred.double().var(dim=0, correction=0).mean())
    least = _TOLERANCE * variance
    best: tuple[float, Tensor] | None = None
    for start in _first_centres(centred, count, starts, torch.Generator().manual_seed(seed)):
        clusters, inertia = _Descent(centred, centred[start]).run(least)
        if best is None or inertia < best[0] * _TIGHTER:
            best = inertia, clusters
    assert best is not None
    return best[1]


def _first_centres(points: Tensor, count: int, starts: int, generator: torch.Generator) -> Tensor:
    """The indices [starts, count] of the points [n, d] with which each start begins, by k-means++.

    The first is a random point. Each further one is the best of 2 + ln(count) points that are drawn by their squared
    distance from the nearest centre so far: the one that leaves the smallest sum of these. Random numbers come from the
    `generator` on the CPU, so that they are the same on every device.
    """
    trials = 2 + int(math.log(count))
    at_once = max(1, _HELD_DISTANCES // (trials * len(points)))
    # Each start has its own random numbers, so that it does not depend on how many run at once.
    seeds = [int(torch.randint(2**62, (), generator=generator)) for _ in range(starts)]
    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    parts = [_together(points, count, trials, draws[at : at + at_once]) for at in range(0, starts, at_once)]
    return torch.cat(parts)


def _together(points: Tensor, count: int, trials: int, draws: list[torch.Generator]) -> Tensor:
    """The centres of several starts, computed together: the candidates of all need only one product with all points."""

    def drawn() -> Tensor:
        """Random numbers in [0, 1) for the next centre of each start, float64 [starts, trials]."""
        return torch.stack([torch.rand(trials, generator=draw, dtype=torch.float64) for draw in draws]).to(device)

    number, device = len(points), points.device
    squares = points.square().sum(dim=1)
    chosen = torch.empty(len(draws), count, dtype=torch.int64, device=device)
    chosen[:, 0] = (drawn()[:, 0] * number).long().clamp_(max=number - 1)
    nearest = _distances(points, squares, chosen[:, 0])  # [starts, n], squared
    every = torch.arange(len(draws), device=device)
    for at in range(1, count):
        below = nearest.cumsum(dim=1, dtype=torch.float64)
        wanted = drawn() * below[:, -1:]
        candidates = torch.searchsorted(below, wanted).clamp_(max=number - 1)  # [starts, trials]
        left = _distances(points, squares, candidates.flatten()).view(*candidates.shape, number)
        torch.minimum(left, nearest[:, None], out=left)
        best = left.sum(dim=2).argmin(dim=1, keepdim=True)
        chosen[:, at] = candidates.gather(1, best)[:, 0]
        nearest = left[every, best[:, 0]]
    return chosen


def _distances(points: Tensor, squares: Tensor, of: Tensor) -> Tensor:
    """The squared distances [m, n] of the points with the indices `of` from all points."""
    found = torch.addmm(squares[None], points.index_select(0, of), points.T, alpha=-2)
    return found.add_(squares[of][:, None]).clamp_(min=0)


class _Descent:
    """Lloyd's algorithm with little memory.

    Most centres soon stop moving, so an iteration compares only what may have changed. If the distance to a point's own
    centre has not grown, no unmoved centre is nearer: the point is compared with the moved centres only, and all other
    points with every centre. The result is the same as comparing all with all.
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

    def run(self, least: float) -> tuple[Tensor, float]:
        """The clusters [n] and their inertia: the sum of the squared distances from their centres."""
        changed = self._every
        for _ in range(_ITERATIONS):
            changed = torch.cat([changed, self._fill()]).unique()  # type: ignore[no-untyped-call]
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
        """The nearest of the centres `among` for each of `points` (indices; None means all), and how near it is.

        Also how near the `own` centre is, given by its place in `among`, or -1; then this has no meaning.
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
        """Assign points to their nearest centres after the centres `changed` moved; returns the changed clusters."""
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
        """Move points to other clusters; returns the clusters that change."""
        left = self._clusters[points]
        self._count(points, left, -1)
        self._count(points, to, 1)
        self._clusters = self._clusters.index_copy(0, points, to)
        changed: Tensor = torch.unique(torch.cat([left, to]))
        return changed

    def _count(self, points: Tensor, clusters: Tensor, sign: int) -> None:
        """Add points to the sums and sizes of clusters, or subtract them; in float64, so that no remainder stays."""
        rows = max(1, _HELD // (2 * self._points.shape[1]))
        for some, into in zip(torch.split(points, rows), torch.split(clusters, rows), strict=True):
            self._sums.index_add_(0, into, self._points.index_select(0, some).double(), alpha=sign)
            self._sizes.index_add_(0, into, torch.full_like(into, sign))

    def _follow(self, changed: Tensor) -> float:
        """Move the centres of the clusters `changed` to the means of their points; returns their squared moves."""
        filled = changed[self._sizes[changed] > 0]
        means = (self._sums[filled] / self._sizes[filled, None]).to(self._centres)
        shift = float((means - self._centres[filled]).square().sum())
        self._centres[filled] = means
        return shift

    def _fill(self) -> Tensor:
        """Give each empty cluster one of the points farthest from their centres; returns the clusters that change.

        This is scikit-learn's rule, but points stay if they are alone in their cluster, or on its centre.
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
