"""Costly requests take turns: a few are at work at once, some wait, and what nobody waits for any more stops.

A thread cannot be stopped from outside, so costly work asks `orchestrator.views.deadline` now and then about going on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response

from api.answers.threads import InOneThread
from orchestrator.views.deadline import Deadline, GoneError, within
from orchestrator.views.errors import BusyError

CLIENT_GONE: Final = 499
"""The status of an answer that nobody reads, as nginx counts it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many requests of a lane are at work at once, how many wait, and for how many seconds each."""

    at_once: int
    waiting: int
    wait_seconds: float
    work_seconds: float | None = None  # none: METRICSWEEP_REQUEST_SECONDS


LANES: Final[Mapping[str, Bounds]] = {
    "check": Bounds(at_once=2, waiting=16, wait_seconds=30),  # specs: dry runs, submits, extensions
    "draw": Bounds(at_once=2, waiting=32, wait_seconds=30),  # tables, figures, cells, comparisons
    "list": Bounds(at_once=2, waiting=64, wait_seconds=30),  # listings and plots: a scan of the trials each
    "page": Bounds(at_once=2, waiting=32, wait_seconds=30),  # pages that show tables
    "bundle": Bounds(at_once=1, waiting=4, wait_seconds=30, work_seconds=3_600),  # a large one has hundreds of pictures
}


class Lane:
    """Requests of one kind, which wait for one another and for none of another kind."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._free = asyncio.Semaphore(bounds.at_once)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """A turn to work, once there is one; raises BusyError where too many wait, or where it takes too long."""
        if self._free.locked() and self._waiting >= self._bounds.waiting:
            raise BusyError("the server has as many costly requests to answer as it takes; try again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._bounds.wait_seconds):
                await self._free.acquire()
        except TimeoutError:
            waited = f"{self._bounds.wait_seconds:g} seconds"
            raise BusyError(f"other costly requests were not done within {waited}; try again in a moment") from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()

    def seconds(self, usual: float) -> float:
        """How long one of its requests may be at work."""
        return self._bounds.work_seconds or usual


def lanes() -> dict[str, Lane]:
    """The lanes of one application."""
    return {name: Lane(bounds) for name, bounds in LANES.items()}


class _Costly(InOneThread):
    """A route whose requests take turns. A slow client's body is read before its turn, and its answer sent after it."""

    lane: str

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of FastAPI, in its turn."""
        handle = super().get_route_handler()

        async def in_turn(request: Request) -> Response:
            await request.body()
            lane: Lane = request.app.state.lanes[self.lane]
            async with lane.turn():
                deadline = Deadline(lane.seconds(request.app.state.settings.request_seconds))
                watching = asyncio.create_task(_watch(request, deadline))
                try:
                    with within(deadline):
                        return await handle(request)
                except GoneError:
                    return Response(status_code=CLIENT_GONE)
                finally:
                    watching.cancel()

        return in_turn


class Checking(_Costly):
    """Checks a spec."""

    lane = "check"


class DrawingTurn(_Costly):
    """Computes a table or a figure."""

    lane = "draw"


class ListingTurn(_Costly):
    """Looks through the trials."""

    lane = "list"


class PagingTurn(_Costly):
    """Shows a page with tables."""

    lane = "page"


class BundlingTurn(_Costly):
    """Packs a whole sweep."""

    lane = "bundle"


async def _watch(request: Request, deadline: Deadline) -> None:
    """End the work once the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    deadline.end()
