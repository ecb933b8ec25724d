"""Lloyd's algorithm where the products of all pairs of points are held: an iteration adds those of what moves."""

from typing import Final

import torch
from torch import Tensor

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
