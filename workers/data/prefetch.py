"""What a training takes next, prepared while it computes, and copies to a GPU that nobody waits for."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

Prepared = TypeVar("Prepared", bound=tuple[torch.Tensor, ...])


class Prefetcher:
    """Prepares one thing after the other on a thread, and on a GPU on a stream of its own, beside the computation.

    Numbers are the same as without: only when something is computed differs.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._thread = ThreadPoolExecutor(1, "prefetching")
        on_gpu = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if on_gpu else None  # type: ignore[no-untyped-call]
        if self._stream is not None:  # what is prepared from was copied to the GPU on the stream that is current now
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def begin(self, prepare: Callable[[], Prepared]) -> Callable[[], Prepared]:
        """Begin to prepare, after all that was begun before; gives what waits for it, and raises what it raised."""
        return partial(self._taken, self._thread.submit(self._prepared, prepare))

    def _prepared(self, prepare: Callable[[], Prepared]) -> tuple[Prepared, torch.cuda.Event | None]:
        if self._stream is None:
            return prepare(), None
        with torch.cuda.stream(self._stream):
            return prepare(), self._stream.record_event()

    def _taken(self, future: "Future[tuple[Prepared, torch.cuda.Event | None]]") -> Prepared:
        """What was prepared; the stream of the computation waits for it, and the computer does not."""
        prepared, done = future.result()
        if done is not None:
            computing = torch.cuda.current_stream(self._device)
            computing.wait_event(done)
            for tensor in prepared:
                tensor.record_stream(computing)  # its memory is not given away before the computation has used it
        return prepared


def prefetcher(device: torch.device) -> Prefetcher | None:
    """That of a device, where a thread pays: the cores compute themselves where there is no GPU."""
    return Prefetcher(device) if device.type == "cuda" else None


def onto(device: torch.device, values: torch.Tensor) -> torch.Tensor:
    """`values` on a device; from the CPU to a GPU by pinned memory, so that the computer goes on meanwhile."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)
