"""Compression of what is text, but for what holds a secret and for streams.

A secret beside text of somebody else's choice in one compressed answer can be guessed from its length (BREACH). Ours
stand alone: a session is a header, forms hold no token since their Origin is checked, and the few answers that hold a
code or a proof are left as they are. Other sites cannot have a browser ask for anything but a page of its own anyway.
"""

from typing import Final

from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.host.identity import IDENTITY_PATH
from orchestrator.service.frames import MEDIA_TYPE as FRAMES

LEVEL: Final = 5
"""A page of 100 KB in 2 ms to a tenth; level 9 takes twice that for a hundredth less."""
SECRET: Final = ("/login", "/v1/login-links", IDENTITY_PATH)
DENSE: Final = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/pdf", FRAMES)


class Compression:
    """ASGI middleware that compresses answers of over 500 bytes; those below `passed_on` are another server's."""

    def __init__(self, app: ASGIApp, passed_on: str) -> None:
        self._plain = app
        self._packed = GZipMiddleware(app, compresslevel=LEVEL, exclude_content_types=DENSE)
        self._passed_on = f"{passed_on}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, to be answered with fewer bytes where that is safe."""
        path = scope.get("path", "")
        plain = path in SECRET or path.startswith(self._passed_on)
        await (self._plain if plain else self._packed)(scope, receive, send)
