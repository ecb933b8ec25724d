"""The nearest of each row in order, with no indices carried along: cosines as whole numbers that say whose they are."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

NOWHERE = -1.5  # stands for a cosine that is not there, such as a query's with itself: below every cosine
_BLOCK = 64  # similarities of which only the largest is looked at, at first
_SPREAD = 16  # similarities of which only the largest is looked at, where more of them are wanted
_LINE = 16  # float32 in a cache line
_MASK = 2**20  # comparisons held at a time: 1 MiB, which stays in a core's cache
_WHOLE = {torch.float32: (torch.int32, 29), torch.float64: (torch.int64, 60)}  # and bits behind the point


def room(rows: int, unit: Tensor, gallery: Tensor) -> Tensor | None:
    """What `cosines` writes of so many rows, [rows, n], each at the beginning of a cache line: products are then a
    third faster; none on a GPU and in float64, where that was not looked into."""
    if unit.device.type != "cpu" or unit.dtype != torch.float32:
        return None
    return unit.new_empty(rows, -(-len(gallery) // _LINE) * _LINE)[:, : len(gallery)]


def cosines(unit: Tensor, gallery: Tensor, into: Tensor | None) -> Tensor:
    """Those of unit embeddings [b, d] and [n, d], [b, n]; written over the first rows of `into`, the `room`."""
    return unit @ gallery.T if into is None else torch.mm(unit, gallery.T, out=into[: len(unit)])


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
    few = _above_floor(values, count) if count * _SPREAD * 2 < width else None
    if few is not None:
        return few
    # numpy's partition and sort are vectorized; torch's carry indices along and take 10 to 30 times as long.
    _by_rows(values, lambda rows: rows.partition(first, axis=1))
    return values[:, first:].contiguous()


def _above_floor(values: Tensor, count: int) -> Tensor | None:
    """The `count` largest of each row and few beside, filled up with `NOWHERE`; none where these would be many.

    Of blocks that lie spread over a row, `count` have a maximum of at least the floor, and so has each row values.
    """
    blocks = values.shape[1] // _SPREAD
    parts, numbers = _parts(values), torch.empty(len(values), dtype=torch.int64)
    kept: list[npt.NDArray[Any] | None] = [None] * len(parts)

    def look(part: int) -> None:
        some = parts[part]
        cosines = values[some].numpy()
        maxima = values[some, : blocks * _SPREAD].view(-1, _SPREAD, blocks).amax(dim=1).numpy()
        maxima.partition(blocks - count, axis=1)
        mask = _mask(cosines, maxima[:, blocks - count, None], np.greater_equal)
        reached = _trues(mask)
        numbers[some] = torch.from_numpy(reached)
        if reached.max() <= 4 * count:
            rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
            kept[part] = cosines[rows, columns]

    _each(range(len(parts)), look)
    chosen = [one for one in kept if one is not None]
    if len(chosen) < len(parts):
        return None
    few = values.new_full((len(values), int(numbers.max())), NOWHERE)
    few.numpy()[np.arange(few.shape[1]) < numbers[:, None].numpy()] = np.concatenate(chosen)
    return few


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


def above(values: Tensor, bound: Tensor) -> Tensor:
    """How many of each row of `values` [b, n] are above its `bound` [b, 1], [b]."""
    return _counted(values, bound, np.greater) if values.device.type == "cpu" else (values > bound).sum(dim=1)


def at_least(values: Tensor, bound: Tensor) -> Tensor:
    """How many of each row of `values` [b, n] are its `bound` [b, 1] or above, [b]."""
    return _counted(values, bound, np.greater_equal) if values.device.type == "cpu" else (values >= bound).sum(dim=1)


def _counted(values: Tensor, bound: Tensor, compare: Callable[..., Any]) -> Tensor:
    """How often `compare` holds in each row: by numpy, since torch compares a row with its bound one by one."""
    found = torch.empty(len(values), dtype=torch.int64)

    def work(some: slice) -> None:
        found[some] = torch.from_numpy(_trues(_mask(values[some].numpy(), bound[some].numpy(), compare)))

    _each(_parts(values), work)
    return found


def _mask(values: npt.NDArray[Any], bound: npt.NDArray[Any], compare: Callable[..., Any]) -> npt.NDArray[np.bool_]:
    """Where `compare` holds in each row, [b, n] with n brought up to a multiple of 8."""
    mask = np.zeros((len(values), -(-values.shape[1] // 8) * 8), dtype=np.bool_)
    compare(values, bound, out=mask[:, : values.shape[1]])
    return mask


def _trues(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """How many of each row [b, n] are true, where n is a multiple of 8: eight at a time, in the bytes of a word."""
    words = mask.view(np.int64)
    if not words.size:
        return np.zeros(len(mask), dtype=np.int64)
    # A byte holds the sum of 255 at most.
    sums = np.add.reduceat(words, np.arange(0, words.shape[1], 255), axis=1)
    found: npt.NDArray[np.int64] = sums.view(np.uint8).sum(axis=1, dtype=np.int64)
    return found


def count(mask: Tensor) -> Tensor:
    """How many of each row [b, n] are true, [b]."""
    if mask.device.type != "cpu":
        return mask.sum(dim=1)
    # torch's sum of booleans takes several times as long as the comparison that they come from.
    return torch.from_numpy(np.count_nonzero(mask.numpy(), axis=1))


def _parts(values: Tensor) -> list[slice]:
    """Rows of `values` [b, n] of which a comparison stays in the cache, some at a time."""
    size = max(1, _MASK // max(1, values.shape[1]))
    return [slice(first, first + size) for first in range(0, len(values), size)]


def _by_rows(values: Tensor, work: Callable[[npt.NDArray[Any]], None]) -> None:
    """Do `work` in place on all rows."""
    _each(np.array_split(values.numpy(), torch.get_num_threads()), work)


def _each(parts: Sequence[Any], work: Callable[[Any], None]) -> None:
    """Do `work` on all `parts`, in as many threads as torch has: numpy computes without Python's lock."""
    threads = min(torch.get_num_threads(), len(parts))
    if threads < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))
