"""How a request ends that is still at work when the API's time to end is over."""

import asyncio
import logging

from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)


class CutOff:
    """The outermost application: a cancellation, which only the server's end brings this far, is told in one line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless the server ends before."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:  # its task ends here, and uvicorn would print it as an error of ours
            log.warning("a request was cut off, since the server ends")
