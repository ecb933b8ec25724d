"""First centres for k-means by k-means++, greedily as scikit-learn draws them, for several starts at once."""

import math
from typing import Final

import torch
from torch import Tensor

_HELD: Final = 2**23  # distances held at a time: 32 MiB of float32, and about three times that in copies
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
    at_once = max(1, _HELD // (trials * len(points)))
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
