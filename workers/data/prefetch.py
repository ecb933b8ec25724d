"""What a training takes next, prepared while it computes, and copies to a GPU that nobody waits for."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Final, TypeVar

import torch

Prepared = TypeVar("Prepared", bound=tuple[torch.Tensor, ...])

_UNDONE: Final = 4  # things that were taken, beside the last one, which a GPU may not have computed with yet


class Prefetcher:
    """Prepares one thing after the other on a thread, and on a GPU on a stream of its own, beside the computation.

    Numbers are the same as without: only when something is computed differs. What the GPU has not come to yet holds
    memory, so that nothing is prepared while more than a few things wait for it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._thread = ThreadPoolExecutor(1, "prefetching")
        self._given: deque[torch.cuda.Event] = deque()  # what the GPU was told to compute before each thing was taken
        self._stream = _stream(device) if device.type == "cuda" else None
        if self._stream is not None:  # what is prepared from was copied to the GPU on the stream that is current now
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def begin(self, prepare: Callable[[], Prepared]) -> Callable[[], Prepared]:
        """Begin to prepare, after all that was begun before; gives what waits for it, and raises what it raised."""
        return partial(self._taken, self._thread.submit(self._prepared, prepare))

    def _prepared(self, prepare: Callable[[], Prepared]) -> tuple[Prepared, torch.cuda.Event | None]:
        if self._stream is None:
            return prepare(), None
        while len(self._given) > _UNDONE:
            self._given.popleft().synchronize()
        with torch.cuda.stream(self._stream):
            return prepare(), self._stream.record_event()

    def _taken(self, future: "Future[tuple[Prepared, torch.cuda.Event | None]]") -> Prepared:
        """What was prepared; the stream of the computation waits for it, and the computer does not."""
        prepared, done = future.result()
        if done is not None:
            computing = torch.cuda.current_stream(self._device)
            self._given.append(computing.record_event())
            computing.wait_event(done)
            for tensor in prepared:
                tensor.record_stream(computing)  # its memory is not given away before the computation has used it
        return prepared


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One of a device for all trainings of the process: freed memory serves again only on the stream that it was of."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def prefetcher(device: torch.device) -> Prefetcher | None:
    """That of a device, where a thread pays: the cores compute themselves where there is no GPU."""
    return Prefetcher(device) if device.type == "cuda" else None


def onto(device: torch.device, values: torch.Tensor) -> torch.Tensor:
    """`values` on a device; from the CPU to a GPU by pinned memory, so that the computer goes on meanwhile."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)
