"""Expensive requests take turns: a few run at once, some wait, and work stops when its client has left.

A thread cannot be stopped from outside, so expensive work checks `orchestrator.views.errors` now and then.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from orchestrator.views.errors import BusyError, Deadline, GoneError, within

CLIENT_GONE: Final = 499
"""The status of an answer that nobody reads, as nginx counts it."""
AT_ONCE: Final = 4
WAITING: Final = 64
WAIT_SECONDS: Final = 30.0


class Turns:
    """A semaphore for expensive requests; refuses a request where too many wait, or where it waits too long."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING, wait_seconds: float = WAIT_SECONDS) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._room, self._wait_seconds = waiting, wait_seconds
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold one of the turns within the block; raises BusyError where none can be had."""
        if self._free.locked() and self._waiting >= self._room:
            raise BusyError("the server has as many expensive requests to answer as it takes; try again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._free.acquire()
        except TimeoutError:
            detail = f"other expensive requests did not end within {self._wait_seconds:g} seconds"
            raise BusyError(f"{detail}; try again in a moment") from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()


class Expensive(APIRoute):
    """A route whose requests take turns. The body is read before the turn, and the answer is sent after it."""

    work_seconds: ClassVar[float | None] = None
    """How long a request may work; None means METRICSWEEP_REQUEST_SECONDS."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, run in a turn."""
        handle = super().get_route_handler()

        async def in_turn(request: Request) -> Response:
            await request.body()
            turns: Turns = request.app.state.turns
            async with turns.turn():
                deadline = Deadline(self.work_seconds or request.app.state.settings.request_seconds)
                watching = asyncio.create_task(_watch(request, deadline))
                try:
                    with within(deadline):
                        return await handle(request)
                except GoneError:
                    return Response(status_code=CLIENT_GONE)
                finally:
                    watching.cancel()

        return in_turn


class ExpensiveSpec(Expensive):
    """A route that checks a spec. Its work is bounded by counts, which are the same on a busy machine, and not by time.

    `orchestrator.plan.problems` counts the steps of the check; the number of trials and the bytes of their
    recipes (`orchestrator.plan.soundness`) bound the expansion.
    """

    work_seconds = math.inf


class ExpensiveBundle(Expensive):
    """Packs a whole sweep, which may hold hundreds of pictures."""

    work_seconds = 3_600.0


async def _watch(request: Request, deadline: Deadline) -> None:
    """End the work once the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    deadline.end()
