"""How many requests are worked on at once; what comes beyond waits at its sender, not here."""

from collections.abc import Callable
from typing import Final

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import answer, details

MOST_AT_WORK: Final = 128
"""40 have a thread, the others wait for one. A request whose sender has gone is worked on to its end and counts, so
that nobody fills the memory by asking and leaving."""
BUSY: Final = f"{MOST_AT_WORK} requests are being worked on; ask again in a moment"
LATER: Final = {"Retry-After": "5"}
UNCOUNTED: Final = frozenset({"/healthz"})


class AdmissionLimit:
    """ASGI middleware that answers 503 beyond a number of requests; one whose body still comes in takes no turn.

    A stream of events, as `is_stream` knows it by method and path, is not counted: it works once a second, and the feed
    has a bound of its own.
    """

    def __init__(self, app: ASGIApp, is_stream: Callable[[str, str], bool] = lambda method, path: False) -> None:
        self.app = app
        self.is_stream = is_stream
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when it is whole, or refuse it."""
        if scope["type"] != "http" or scope["path"] in UNCOUNTED or self.is_stream(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        counted = not _has_body(request)
        if counted and self._at_work >= MOST_AT_WORK:
            await answer(request, details(request, 503, BUSY), LATER)(scope, receive, send)
            return
        self._at_work += counted

        async def whole() -> Message:
            nonlocal counted
            event = await receive()
            if event["type"] == "http.request" and not event.get("more_body") and not counted:
                if self._at_work >= MOST_AT_WORK:
                    raise HTTPException(503, BUSY, LATER)  # as in BodyLimit: FastAPI makes a 400 of any other
                counted, self._at_work = True, self._at_work + 1
            return event

        try:
            await self.app(scope, whole, send)
        finally:
            self._at_work -= counted


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
