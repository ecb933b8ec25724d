"""Keeps freed memory in the process: torch on a CPU frees and takes the same large blocks at every iteration."""

import ctypes
import functools
from typing import Final

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # glibc's malloc.h
_LARGEST: Final = 2**31 - 1
_PAD_BYTES: Final = 64 * 2**20


@functools.cache
def keep_freed() -> bool:
    """Have glibc neither map large blocks nor give freed ones back, each of which costs a page fault per 4 KiB.

    For the whole process, once. Changes no result. False where the C library is another.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return all(
        mallopt(option, value) == 1
        for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST), (_TOP_PAD, _PAD_BYTES))
    )
