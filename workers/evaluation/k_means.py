"""k-means as scikit-learn computes it: starts by k-means++, each until nothing changes, and the tightest wins."""

from typing import Final, NamedTuple

import torch
from torch import Tensor

from workers.catalog.clustering_cost import STARTS
from workers.evaluation.first_centres import first_centres
from workers.evaluation.held_products import descend, products

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
