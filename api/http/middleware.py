"""Middleware around every request: headers and ids, checks of Host and Origin, limits on rates and bodies."""

import asyncio
import ipaddress
import logging
import math
import re
import socket
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import answer, details
from orchestrator.host.identity import IDENTITY_PATH
from orchestrator.host.logs import about
from orchestrator.settings import Settings
from orchestrator.views.accounts import Caller, caller

log = logging.getLogger(__name__)

MLFLOW_PATH: Final = "/mlflow"
"""The path of MLflow on this server."""
PEER: Final = "metricsweep.peer"
"""The key under which a scope has the address of the connection, whatever a header says."""
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised here, bound nowhere
SECURITY_HEADERS: Final = {
    # Scripts come only from our own files. Styles may stand in the page, since Vega's charts and table cells have some.
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
BODY_BYTES: Final = 1024 * 1024
UPLOAD_BYTES: Final = 1024**3
"""The largest file that is streamed to MLflow."""
_CONTENT_TYPE_BYTES: Final = 256
"""A content type with its boundary has 80 bytes; parsing its parameters takes quadratic time."""
_BURST_SECONDS: Final = 10.0
"""After a pause of this length, a client may send at once what the rate allows in this time."""
MOST_KEPT: Final = 20_000
"""How many buckets are kept; the least recently used are dropped."""
_HOST: Final = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{0,5}))?")
_MOST_PORTS: Final = 65_535
_UNCOUNTED: Final = frozenset({"/healthz", "/readyz", IDENTITY_PATH})
"""Paths that watchdogs and our own commands request first; answering costs no more than refusing."""


class PeerAddress:
    """ASGI middleware that records the address of the connection, before a proxy's headers replace it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request."""
        if scope["type"] == "http":
            scope[PEER] = scope["client"][0] if scope.get("client") else ""
        await self.app(scope, receive, send)


class ResponseHeaders:
    """ASGI middleware that sets headers on every answer and turns an unknown error into a 500 without details."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request; an error is logged with the request id, which the client gets."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        started = False

        async def send_with_headers(message: Message) -> None:
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
                await self.app(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # only the server's end cancels a request; uvicorn would print a traceback
            log.warning("request %s: %s %s: cut off, since the server ends", request_id, scope["method"], scope["path"])
        except ClientDisconnect:
            log.debug("request %s: %s %s: its sender went away", request_id, scope["method"], scope["path"])
        except Exception:
            log.exception("request %s: %s %s failed", request_id, scope["method"], scope["path"])
            if started:
                raise
            request = Request(scope)
            detail = "the server met an error of its own; its log tells more under the request id"
            failed = answer(request, details(request, 500, detail, request_id=request_id))
            await failed(scope, receive, send_with_headers)


class HostsAndOrigins:
    """ASGI middleware that refuses foreign Host names (DNS rebinding), and requests from other sites except links."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.names = frozenset(_names(settings))
        # A numeric address cannot be rebound, and a wildcard listens on every address of the machine.
        self.numeric = settings.host in _WILDCARDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request that names this server and does not come from another site."""
        refused = self._refuse(Request(scope)) if scope["type"] == "http" else None
        await (refused or self.app)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        name = _hostname(host)
        if not (name in self.names or (self.numeric and _is_address(name))):
            detail = f"this server does not answer to the name {host!r}; METRICSWEEP_HOST or METRICSWEEP_URL name it"
            return answer(request, details(request, 421, detail))
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        foreign = _netloc(origin) != host.lower() if origin else site not in ("same-origin", "none")
        if not foreign or _is_navigation(request):
            return None
        reading = request.method in SAFE_METHODS
        rule = "may link to this server, not load from it" if reading else "may not change anything here"
        return answer(request, details(request, 403, f"a page of {origin or 'another site'} {rule}"))


def _is_navigation(request: Request) -> bool:
    """Whether a person followed a link; browsers set these headers, and pages cannot.

    Images, frames and scripts of other sites are refused, since they would make this server compute figures.
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
    if settings.host in _WILDCARDS:
        yield from (socket.gethostname().lower(), socket.getfqdn().lower())
    else:
        yield settings.host.lower()


def _hostname(host: str) -> str:
    """The name in a `Host` header; empty if the header is not a name and a port, since addresses are made of it."""
    found = _HOST.fullmatch(host)
    if found is None or int(found["port"] or 0) > _MOST_PORTS:
        return ""
    return (found["address"] or found["name"]).lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class BodyLimit:
    """ASGI middleware that refuses a body over 1 MiB while it arrives, and a content type over 256 bytes.

    Uploads, which `is_upload` recognizes by method and path, may be larger, since they are forwarded as a stream.
    """

    def __init__(self, app: ASGIApp, is_upload: Callable[[str, str], bool]) -> None:
        self.app = app
        self.is_upload = is_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request with a `receive` that counts bytes."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if len(dict(scope["headers"]).get(b"content-type", b"")) > _CONTENT_TYPE_BYTES:
            request = Request(scope)
            detail = f"the content type is over {_CONTENT_TYPE_BYTES} bytes"
            await answer(request, details(request, 415, detail))(scope, receive, send)
            return
        seen, most = 0, UPLOAD_BYTES if self.is_upload(scope["method"], scope["path"]) else BODY_BYTES

        async def counted() -> Message:
            nonlocal seen
            event = await receive()
            seen += len(event.get("body", b""))
            if seen > most:
                raise too_large(f"the body is over {most} bytes ({most // 1024**2} MiB)")
            return event

        await self.app(scope, counted, send)


def too_large(detail: str) -> HTTPException:
    """A 413, as an HTTPException, since FastAPI turns any other exception of `receive` into a 400."""
    return HTTPException(413, detail, headers={"Connection": "close"})


class TokenBuckets:
    """A token bucket for each key, which holds what `_BURST_SECONDS` bring.

    Only the time at which a bucket will be full again is kept (the generic cell rate algorithm).
    """

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = rate, now
        self._full: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """Take a token; returns 0, or the seconds until there is one. A rate of 0 limits nothing."""
        if not self._rate:
            return 0.0
        now, cost = self._now(), 1 / self._rate
        full = max(self._full.pop(key, now), now) + cost
        wait = full - now - max(_BURST_SECONDS, cost)
        if wait > 1e-9:  # a refused request takes no token
            self._full[key] = full - cost
            return wait
        self._full[key] = full
        while len(self._full) > MOST_KEPT:
            self._full.popitem(last=False)
        return 0.0


class RateLimit:
    """ASGI middleware that limits requests per second, after authentication.

    `rates` limits requests that `read`, that `write`, and those to paths that are `open` to everybody, for which
    `is_open` returns True.
    """

    def __init__(
        self,
        app: ASGIApp,
        rates: Mapping[str, float],
        is_open: Callable[[str], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self.is_open = app, is_open
        self._buckets = {kind: TokenBuckets(rate, now) for kind, rate in rates.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request within its rate; otherwise answer 429 with the time to wait."""
        wait, whose = self._wait(scope) if scope["type"] == "http" else (0.0, "")
        if not wait:
            await self.app(scope, receive, send)
            return
        request, seconds = Request(scope), math.ceil(wait)
        detail = f"{whose} sent more requests than are answered; come back in {seconds} s"
        problem = details(request, 429, detail, type="urn:metricsweep:problem:too-many-requests")
        await answer(request, problem, {"Retry-After": str(seconds)})(scope, receive, send)

    def _wait(self, scope: Scope) -> tuple[float, str]:
        method, path = scope["method"], scope["path"]
        if path in _UNCOUNTED or path.startswith("/static/") or is_stream(method, path):
            return 0.0, ""  # event streams are limited by number
        if self.is_open(path):
            return self._buckets["open"].take(_network(scope)), "this address"
        requester, mirrored = caller(), path.startswith(f"{MLFLOW_PATH}/")
        if mirrored and requester.is_owner:
            return 0.0, ""  # the conductor, which mirrors every run
        # MLflow's client also reads by POST, and a notebook sends a request for each epoch.
        kind = "read" if mirrored or method in SAFE_METHODS else "write"
        return self._buckets[kind].take(_key(requester, scope)), "this token"


def is_stream(method: str, path: str) -> bool:
    """Whether a request asks for events: it lasts as long as its client listens, and has a limit of its own."""
    return method == "GET" and path.startswith("/v1/") and path.endswith("/events")


def _key(requester: Caller, scope: Scope) -> Hashable:
    """The bucket of a caller: of its token, its share links, or its name behind a proxy; of the owner, the address."""
    if requester.token is not None:
        return "token", requester.token
    if requester.is_visitor:
        return "link", min(requester.links)
    return ("user", requester.user) if requester.user is not None else _network(scope)


def _network(scope: Scope) -> Hashable:
    """The client's address; with IPv6 its /64 network, since one machine may use all of it."""
    host = scope["client"][0] if scope.get("client") else ""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.version == 6 and address.ipv4_mapped is None:
            return "network", int(address) >> 64
    return "address", host
