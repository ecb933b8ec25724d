"""A limit on expensive requests: a few run at once, some wait, and work stops when its client has left.

A thread cannot be stopped from outside, so expensive work checks its deadline (`orchestrator.views.errors`) often.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from orchestrator.views.errors import BusyError, Deadline, GoneError, within

_CLIENT_GONE: Final = 499
"""The status of an answer that nobody reads, as in nginx."""
AT_ONCE: Final = 4
WAITING: Final = 64
_WAIT_SECONDS: Final = 30.0


class Turns:
    """A semaphore for expensive requests; refuses a request if too many wait, or if it waits too long."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._room, self._wait_seconds = waiting, wait_seconds
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a turn within the block; raises BusyError if no turn is free in time."""
        if self._free.locked() and self._waiting >= self._room:
            raise BusyError("too many expensive requests wait for the server; try again in a moment")
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
        """FastAPI's handler of a route, run in a turn."""
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
                    return Response(status_code=_CLIENT_GONE)
                finally:
                    watching.cancel()

        return in_turn


class ExpensiveSpec(Expensive):
    """A route that checks a spec. Its work has no time limit, so that a busy machine refuses no valid spec.

    `orchestrator.plan.points` limits the steps of the check; `orchestrator.plan.soundness` limits the number of
    trials and the size of their recipes.
    """

    work_seconds = math.inf


class ExpensiveBundle(Expensive):
    """A route that packs a whole sweep, which may contain hundreds of pictures."""

    work_seconds = 3_600.0


async def _watch(request: Request, deadline: Deadline) -> None:
    """End the work when the client leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    deadline.end()
