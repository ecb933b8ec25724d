"""Answers that are shared: 300 pages of one sweep ask the same within a second, and it is computed once."""

import asyncio
import hashlib
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.views.callers import caller

CHANGE_HEADER: Final = "metricsweep-change"
"""The id of an event that the answer must know of."""
MOST_SECONDS: Final = 10
"""However old an answer its sender would take."""
MOST_KEPT: Final = 32
LEVEL: Final = 5
"""Of compression."""
MOST_BYTES: Final = 1024 * 1024
KINDS: Final = ("text/html", "application/json")


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """A whole answer with its tag."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    packed: bytes
    tag: str
    route: object
    """That it came from, for who counts answers by route."""


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An answer that is there or under way: when it was begun, and the last event that the server knew of then."""

    begun: float
    change: int
    answer: asyncio.Future[WholeAnswer | None]


class SharedAnswers:
    """ASGI middleware: who asks by `Cache-Control: max-age=2` gets what another got within these seconds.

    Such answers have an ETag, and `If-None-Match` is answered with 304. Pages and JSON alone, which are the same for
    all who see the same projects in the same role; anything else is answered as if nobody shared it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._asked: dict[tuple[str, bytes, str, str], SharedAnswer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """WholeAnswer with what is known, or pass the request on."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        seconds = _max_age(headers) if scope.get("method") == "GET" else 0
        answer = await self._shared(scope, headers, seconds) if seconds else None
        if answer is None:
            await self._app(scope, receive, send)
        else:
            scope.setdefault("route", answer.route)
            await _send(answer, headers, send)

    async def _shared(self, scope: Scope, headers: Headers, seconds: int) -> WholeAnswer | None:
        key = (scope["path"], scope["query_string"], headers.get("accept", ""), caller().key)
        known, now = self._asked.get(key), time.monotonic()
        given = headers.get(CHANGE_HEADER, "")
        needed = int(given) if given.isascii() and given.isdigit() and len(given) < 19 else 0
        if known is None or known.begun < now - seconds or known.change < needed:
            known = SharedAnswer(now, _change(scope), asyncio.ensure_future(self._ask(scope)))
            self._keep(key, known)
        try:
            return await asyncio.shield(known.answer)
        finally:
            self._forget_failed(key)

    def _keep(self, key: tuple[str, bytes, str, str], asked: SharedAnswer) -> None:
        old = [one for one, known in self._asked.items() if known.begun < asked.begun - MOST_SECONDS]
        for one in old or list(self._asked)[: max(0, len(self._asked) - MOST_KEPT + 1)]:
            del self._asked[one]
        self._asked[key] = asked

    def _forget_failed(self, key: tuple[str, bytes, str, str]) -> None:
        """Have who asks later ask anew: what failed once is no answer for all who come within seconds."""
        known = self._asked.get(key)
        if known is not None and known.answer.done() and known.answer.exception():
            del self._asked[key]

    async def _ask(self, scope: Scope) -> WholeAnswer | None:
        """The answer of the application; none where it is not to be shared."""
        start: Message = {}
        body = bytearray()

        async def receive() -> Message:
            if not start.get("asked"):
                start["asked"] = True
                return {"type": "http.request", "body": b"", "more_body": False}
            return await asyncio.Event().wait()  # type: ignore[return-value]  # nobody leaves: others may wait for it

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                if not _may_be_shared(message):
                    raise _UnsharedError
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))

        try:
            await self._app(scope, receive, send)
        except _UnsharedError:
            return None
        content = bytes(body)
        packed = await asyncio.to_thread(_packed, content)
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return WholeAnswer(start["status"], start["headers"], content, packed, tag, scope.get("route"))


class _UnsharedError(Exception):
    """Ends an answer that is not to be shared, before anything of it was sent."""


def _max_age(headers: Headers) -> int:
    """How old an answer may be, in seconds; 0: its sender wants his own."""
    for said in headers.get("cache-control", "").lower().split(","):
        name, _, value = said.strip().partition("=")
        if name == "max-age" and value.isascii() and value.isdigit():
            return min(int(value[:9]), MOST_SECONDS)
    return 0


def _change(scope: Scope) -> int:
    position: int = scope["app"].state.feed.position
    return position


def _may_be_shared(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    kind = headers.get("content-type", "").partition(";")[0]
    length = headers.get("content-length", "")
    plain = "set-cookie" not in headers and "content-encoding" not in headers
    return start["status"] == 200 and kind in KINDS and plain and length.isdigit() and int(length) <= MOST_BYTES


def _packed(content: bytes) -> bytes:
    packing = zlib.compressobj(LEVEL, zlib.DEFLATED, 31)  # 31: with the head and end of gzip
    return packing.compress(content) + packing.flush()


async def _send(answer: WholeAnswer, asked: Headers, send: Send) -> None:
    headers = MutableHeaders(raw=list(answer.headers))
    headers["ETag"] = answer.tag
    headers.add_vary_header("Accept-Encoding")
    body, status = answer.body, answer.status
    if answer.tag in asked.get("if-none-match", ""):
        body, status = b"", 304
        del headers["Content-Length"]
    else:
        if "gzip" in asked.get("accept-encoding", ""):
            body = answer.packed
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(body))
    await send({"type": "http.response.start", "status": status, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})
