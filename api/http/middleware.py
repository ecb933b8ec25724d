"""Middleware around every request: headers and ids, the check of Host and Origin, limits of rates and bodies."""

import asyncio
import ipaddress
import logging
import math
import re
import socket
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
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
BODY_BYTES: Final = 1024 * 1024
UPLOAD_BYTES: Final = 1024**3
"""The largest file that MLflow is passed, as a stream that nobody holds."""
CONTENT_TYPE_BYTES: Final = 256
"""A content type with its boundary has 80; reading its parameters takes quadratic time."""
BURST_SECONDS: Final = 10.0
"""Whoever was silent for so long may send as much at once as this time allows."""
MOST_KEPT: Final = 20_000
"""Buckets that are kept; beyond them those are forgotten that were used longest ago."""
_HOST: Final = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{0,5}))?")
_MOST_PORTS: Final = 65_535
UNCOUNTED: Final = frozenset({"/healthz", "/readyz", IDENTITY_PATH})
"""What watchdogs and our own commands ask before anything else; each costs no more than to be refused."""


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
    """The name in a `Host`; empty where the header is more than a name and a port: whole addresses are made of it."""
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
    """ASGI middleware that refuses a body over 1 MiB while it comes in, and a content type over 256 bytes.

    An upload, as `is_upload` knows it by method and path, may be larger, since it is passed on while it comes in.
    """

    def __init__(self, app: ASGIApp, is_upload: Callable[[str, str], bool]) -> None:
        self.app = app
        self.is_upload = is_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a `receive` that counts."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if len(dict(scope["headers"]).get(b"content-type", b"")) > CONTENT_TYPE_BYTES:
            request = Request(scope)
            detail = f"the content type is over {CONTENT_TYPE_BYTES} bytes"
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
    """A 413, as an HTTPException: FastAPI turns any other exception of `receive` into a 400."""
    return HTTPException(413, detail, headers={"Connection": "close"})


class TokenBuckets:
    """A bucket each: it holds what `BURST_SECONDS` bring, and every request takes one.

    Of a bucket only the moment is kept at which it will be full again (the generic cell rate algorithm).
    """

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = rate, now
        self._full: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """Seconds until the next request of this key is answered; 0: this one is. A rate of 0 limits nothing."""
        if not self._rate:
            return 0.0
        now, cost = self._now(), 1 / self._rate
        full = max(self._full.pop(key, now), now) + cost
        wait = full - now - max(BURST_SECONDS, cost)
        if wait > 1e-9:  # what is refused takes nothing
            self._full[key] = full - cost
            return wait
        self._full[key] = full
        while len(self._full) > MOST_KEPT:
            self._full.popitem(last=False)
        return 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a second: those that read, those that change something, and those that anybody may send."""

    read: float
    write: float
    open: float

    @classmethod
    def of(cls, settings: Settings) -> "Rates":
        """As the settings have them."""
        return cls(settings.read_rate, settings.write_rate, settings.open_rate)


class RateLimit:
    """ASGI middleware behind the check of who asks; `is_open` knows the paths for which nobody is asked."""

    def __init__(
        self, app: ASGIApp, rates: Rates, mlflow: str, is_open: Callable[[str], bool],
        is_stream: Callable[[str, str], bool], now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.app, self.mlflow, self.is_open, self.is_stream = app, f"{mlflow}/", is_open, is_stream
        self._buckets = {name: TokenBuckets(getattr(rates, name), now) for name in ("read", "write", "open")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is within its rate; anything else is a 429 that says when to come back."""
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
        if path in UNCOUNTED or path.startswith("/static/") or self.is_stream(method, path):
            return 0.0, ""  # streams are counted by connections
        if self.is_open(path):
            return self._buckets["open"].take(_network(scope)), "this address"
        who, mirrored = caller(), path.startswith(self.mlflow)
        if mirrored and who.user is None:
            return 0.0, ""  # the conductor, which mirrors every run
        # MLflow's client asks by POST, and an epoch of a notebook is a request.
        kind = "read" if mirrored or method in SAFE_METHODS else "write"
        return self._buckets[kind].take(_key(who, scope)), "this token"


def _key(who: Caller, scope: Scope) -> Hashable:
    """Whose bucket it is: a token's, a user's for whom a proxy asks; many share the server's token: an address's."""
    if who.token is not None:
        return "token", who.token
    return ("user", who.user) if who.user is not None else _network(scope)


def _network(scope: Scope) -> Hashable:
    """From where it came; of IPv6 the network, of which one machine has all addresses."""
    host = scope["client"][0] if scope.get("client") else ""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.version == 6 and address.ipv4_mapped is None:
            return "network", int(address) >> 64
    return "address", host
