"""The nearest of each row in order, with no indices carried along: cosines as whole numbers that say whose they are."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

NOWHERE = -1.5  # stands for a cosine that is not there, such as a query's with itself: below every cosine
_BLOCK = 64  # similarities of which only the largest is looked at, at first
_WHOLE = {torch.float32: (torch.int32, 29), torch.float64: (torch.int64, 60)}  # and bits behind the point


def units(cosine: float, dtype: torch.dtype) -> int:
    """A difference between cosines of `dtype` in the whole units of `in_order`."""
    return round(cosine * 2.0 ** _WHOLE[dtype][1])


def in_order(own: Tensor, others: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of the rows of two blocks of cosines together, [b, count] in whole units, largest first.

    And which of them are of `own`, [b, count]; of equal ones the `others` come first. Overwrites both.
    """
    keys = _nearest(_keys(own, others), count)
    mine = keys & 1 == 0
    return keys.bitwise_right_shift_(1), mine


def _keys(own: Tensor, others: Tensor) -> Tensor:
    """Cosines as whole numbers with a fixed point, far finer than their rounding; overwrites both.

    The last bit, 0 of `own`, says whose image it is, so that a sort needs to carry no indices.
    """
    whole, point = _WHOLE[own.dtype]
    keys = torch.empty(len(own), own.shape[1] + others.shape[1], dtype=whole, device=own.device)
    keys[:, : own.shape[1]] = own.mul_(2.0**point)
    keys[:, own.shape[1] :] = others.mul_(2.0**point)
    keys.bitwise_left_shift_(1)
    keys[:, own.shape[1] :] += 1
    return keys


def largest(values: Tensor, count: int) -> Tensor:
    """Some of each row of `values` [b, n], with the `count` largest, in any order; may change the order of `values`."""
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


def _nearest(keys: Tensor, count: int) -> Tensor:
    """The `count` largest of each row, the largest first; may change the order of `keys`."""
    if keys.device.type != "cpu":
        return keys.topk(count, dim=1).values
    first = keys.shape[1] - count

    def order(rows: npt.NDArray[Any]) -> None:
        rows.partition(first, axis=1)
        rows[:, first:].sort(axis=1)

    _by_rows(keys, order)
    return keys[:, first:].flip(1)


def count(mask: Tensor) -> Tensor:
    """How many of each row [b, n] are true, [b]."""
    if mask.device.type != "cpu":
        return mask.sum(dim=1)
    # torch's sum of booleans takes several times as long as the comparison that they come from.
    return torch.from_numpy(np.count_nonzero(mask.numpy(), axis=1))


def _by_rows(values: Tensor, work: Callable[[npt.NDArray[Any]], None]) -> None:
    """Do `work` in place on all rows, in as many threads as torch has: numpy sorts without Python's lock."""
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, np.array_split(values.numpy(), threads)))
