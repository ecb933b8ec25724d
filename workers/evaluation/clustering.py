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
        clusters, inertia = _descended(centred, centred[start], least)
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


def _descended(points: Tensor, centres: Tensor, least: float) -> tuple[Tensor, float]:
    """Lloyd's algorithm from the first `centres` [k, d]: the cluster of each point [n], and their inertia.

    The inertia is the sum of the squared distances from the centres. It ends when no cluster changes, or when the
    centres move by at most `least` (squared).
    """
    squares, centres = points.square().sum(dim=1), centres.clone()
    near, clusters = _nearest(points, centres)
    for _ in range(_ITERATIONS):
        filled = _filled(clusters, squares + near, squares, len(centres))
        sizes = filled.bincount(minlength=len(centres))
        known = (sizes > 0).nonzero()[:, 0]
        means = (_sums(points, filled, len(centres))[known] / sizes[known, None]).to(centres)
        shift = float((means - centres[known]).square().sum())
        centres[known] = means
        near, clusters = _nearest(points, centres)
        if shift <= least or torch.equal(clusters, filled):
            break
    return clusters, float((squares + near).clamp_(min=0).sum(dtype=torch.float64))


def _nearest(points: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The squared distance of each point from its nearest centre, less the point's own square, and which centre it is.

    Computed for some points at a time, so that it needs little memory.
    """
    squares = centres.square().sum(dim=1, keepdim=True)
    chunks = torch.split(points, max(1, _HELD // len(centres)))
    parts = [torch.addmm(squares, centres, chunk.T, alpha=-2).min(dim=0) for chunk in chunks]
    return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def _sums(points: Tensor, clusters: Tensor, count: int) -> Tensor:
    """The sum of the points of each cluster, float64 [count, d]."""
    sums = torch.zeros(count, points.shape[1], dtype=torch.float64, device=points.device)
    rows = max(1, _HELD // (2 * points.shape[1]))
    for some, into in zip(torch.split(points, rows), torch.split(clusters, rows), strict=True):
        sums.index_add_(0, into, some.double())
    return sums


def _filled(clusters: Tensor, far: Tensor, squares: Tensor, count: int) -> Tensor:
    """Gives each empty cluster one of the points that are `far` from their centres; returns the new clusters.

    This is scikit-learn's rule, but points stay if they are alone in their cluster, or on its centre.
    """
    sizes = clusters.bincount(minlength=count)
    empty = (sizes == 0).nonzero()[:, 0]
    if not len(empty):
        return clusters
    least = _ROUNDING * torch.finfo(far.dtype).eps * squares.max()
    most, points = far.topk(len(empty))
    clusters = clusters.clone()
    for at in (most > least).nonzero()[:, 0].tolist():
        point, cluster = points[at], empty[at]
        if int(sizes[clusters[point]]) > 1:
            sizes[clusters[point]] -= 1
            clusters[point] = cluster
    return clusters
