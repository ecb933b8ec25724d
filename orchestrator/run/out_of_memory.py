"""Out of memory: how it is told from other failures, and what helps."""

import re
from typing import Final

_SIGNS: Final = re.compile(
    # PyTorch on CUDA and on the CPU, Python, Ray's memory monitor, and the kernel's killer as Ray reports it.
    r"out\s?of\s?memory|\bOOM\b|MemoryError|DefaultCPUAllocator: can't allocate|not enough memory",
    re.IGNORECASE,
)
ADVICE: Final = "give each trial more (slot.gpus, slot.memory_gb), or take smaller batches (sampler)"


def out_of_memory(message: str) -> bool:
    """Whether a failure's message says that memory ran out, on the GPU or on the machine."""
    return _SIGNS.search(message) is not None


def explained(message: str) -> str:
    """The message, with what helps where memory ran out."""
    return f"{message}; {ADVICE}" if out_of_memory(message) else message
