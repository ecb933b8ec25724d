"""The memory of the process: kept from the system while a training runs, and given back between two."""

import ctypes
import functools
from typing import Any, Final

import torch

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8  # glibc's malloc.h
_LARGEST: Final = 2**31 - 1
_PAD_BYTES: Final = 64 * 2**20


@functools.cache
def keep_freed() -> bool:
    """Have glibc neither map large blocks nor give freed ones back, each of which costs a page fault per 4 KiB.

    For the whole process, once; threads to come get no pool of blocks of their own (an arena), which would be kept for
    each of them. Changes no result. False where the C library is another.
    """
    mallopt = _function("mallopt")
    if mallopt is None:
        return False
    options = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST), (_TOP_PAD, _PAD_BYTES), (_ARENA_MAX, 1))
    return [mallopt(option, value) for option, value in options] == [1] * len(options)


def release() -> dict[str, int]:
    """Give the system what trainings that have ended left; gives the bytes that are still reserved on each GPU.

    Whoever trains calls it between two trainings, once nothing refers to the first one any more. What one training
    freed in small pieces would else lie between the blocks of the next. Raises RuntimeError where a GPU has failed.
    """
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)
    reserved = {}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # else the question alone would take some hundred megabytes of a GPU
        torch.cuda.empty_cache()
        for number in range(torch.cuda.device_count()):
            reserved[f"memory on GPU {number}"] = int(torch.cuda.memory_reserved(number))
            torch.cuda.reset_peak_memory_stats(number)
    return reserved


def _function(name: str) -> Any:
    """A function of the C library; none where it has none of that name."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
