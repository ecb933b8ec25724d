"""What stands around every request: security headers, a request id, and the check of Host and Origin."""

import asyncio
import ipaddress
import logging
import socket
import uuid
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import Response
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import answer, details
from orchestrator.host.log_context import about
from orchestrator.settings import Settings

log = logging.getLogger(__name__)

PEER: Final = "metricsweep.peer"
"""Where a scope has the address that the connection comes from, whatever a header says."""
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised here, bound nowhere
SECURITY_HEADERS: Final = {
    # No script but our own files; styles may stand in the page, where Vega's charts and the tables' cells have theirs.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with it browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PeerAddress:
    """ASGI middleware: notes the address that a connection comes from, before a proxy's headers replace it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            scope[PEER] = scope["client"][0] if scope.get("client") else ""
        await self.app(scope, receive, send)


class ResponseHeaders:
    """ASGI middleware: puts headers on every answer and makes an unknown error a 500 that tells nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; what it raises is logged with its id, under which the client can ask about it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        started = False

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            with about(request=request_id):
                await self.app(scope, receive, dressed)
        except asyncio.CancelledError:  # only the server's end cancels a request; uvicorn would print a traceback
            log.warning("request %s: %s %s: cut off, since the server ends", request_id, scope["method"], scope["path"])
        except ClientDisconnect:  # who goes away while sending has no answer coming, and nothing has gone wrong here
            log.debug("request %s: %s %s: its sender went away", request_id, scope["method"], scope["path"])
        except Exception:
            log.exception("request %s: %s %s failed", request_id, scope["method"], scope["path"])
            if started:
                raise
            request = Request(scope)
            detail = "the server met an error of its own; its log tells more under the request id"
            failed = answer(request, details(request, 500, detail, request_id=request_id))
            await failed(scope, receive, dressed)


class HostsAndOrigins:
    """ASGI middleware that refuses foreign Host names (DNS rebinding), and other sites' pages all but links."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.names = frozenset(_names(settings))
        # An address typed as numbers cannot be rebound, and behind a wildcard every address of the machine is ours.
        self.numeric = settings.host in WILDCARDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what names this server and comes from it."""
        refused = self._refuse(Request(scope)) if scope["type"] == "http" else None
        await (refused or self.app)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if not self._ours(host):
            detail = f"this server does not answer to the name {host!r}; METRICSWEEP_HOST or METRICSWEEP_URL name it"
            return answer(request, details(request, 421, detail))
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        foreign = _netloc(origin) != host.lower() if origin else site not in ("same-origin", "none")
        if not foreign or _is_navigation(request):
            return None
        where = origin or "another site"
        reading = request.method in SAFE_METHODS
        said = "may link to this server, not load from it" if reading else "may not change anything here"
        return answer(request, details(request, 403, f"a page of {where} {said}"))

    def _ours(self, host: str) -> bool:
        name = _hostname(host)
        if name in self.names:
            return True
        return self.numeric and _is_address(name)


def _is_navigation(request: Request) -> bool:
    """Whether a person followed a link, in a window of its own; only browsers send these headers, and no page can.

    An image, a frame or a script of another site would have this server compute a figure for nobody to see.
    """
    sent = request.headers
    return (
        request.method in ("GET", "HEAD")
        and "origin" not in sent
        and sent.get("sec-fetch-mode") == "navigate"
        and sent.get("sec-fetch-dest") == "document"
        and "prefetch" not in sent.get("sec-purpose", sent.get("purpose", ""))
    )


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # an unclosed bracket
        return ""


def _names(settings: Settings) -> Iterable[str]:
    """The names by which clients may call this server."""
    yield from ("localhost", "127.0.0.1", "::1")
    public = urlsplit(settings.url).hostname
    if public:
        yield public.lower()
    if settings.host in WILDCARDS:
        yield from (socket.gethostname().lower(), socket.getfqdn().lower())
    else:
        yield settings.host.lower()


def _hostname(host: str) -> str:
    """The name in a `Host`; none where more than a name and a port stand there: addresses are made of the whole."""
    try:
        split = urlsplit(f"//{host}")
        name, _ = split.hostname or "", split.port
    except ValueError:  # an unclosed bracket, or what is no port
        return ""
    return name.rstrip(".") if split.netloc == host and not {"@", "\\"} & set(host) else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
