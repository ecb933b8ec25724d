"""The MLflow server behind its Unix socket: asked for little things, and passed what passes, as a stream."""

import logging
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from api.local.doorbell import Doorbell
from orchestrator.views.errors import UnavailableError

# What goes on is named, so that no cookie, token, forwarded address or origin ever reaches MLflow, and nothing that it
# says about cookies, origins or connections ever reaches a client.
_REQUEST_HEADERS: Final = frozenset({
    "accept", "content-length", "content-type", "if-modified-since", "if-none-match", "if-range", "range", "user-agent",
})  # fmt: skip
_ANSWER_HEADERS: Final = frozenset({
    "accept-ranges", "cache-control", "content-disposition", "content-length", "content-range", "content-type", "etag",
    "last-modified", "retry-after",
})  # fmt: skip
_START_SECONDS: Final = 60.0
"""How long a request that only reads waits for an MLflow that is being started."""
_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0, pool=10.0)
# MLflow's uvicorn closes connections that are silent for 5 s; one of ours must not be used at that moment.
_LIMITS: Final = httpx.Limits(max_connections=32, max_keepalive_connections=8, keepalive_expiry=2.0)


logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write a line for each request that is passed on


class Upstream:
    """One MLflow server; raises UnavailableError where it does not answer."""

    def __init__(self, socket: Path) -> None:
        nothing_known = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a socket encrypts nothing, and to read takes .02 s
        transport = httpx.AsyncHTTPTransport(uds=str(socket), limits=_LIMITS, verify=nothing_known)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=_TIMEOUT)
        self._bell = Doorbell(socket)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def read(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any] | None:
        """The JSON object of a GET; None where MLflow refuses."""
        async with _translated():
            answer = await self._send(self._http.build_request("GET", path, params=dict(query)))
        if answer.status_code != httpx.codes.OK:
            return None
        found = answer.json()
        return found if isinstance(found, dict) else None

    async def page(self) -> str | None:
        """The page that every address of MLflow's interface shows; None where it has none."""
        async with _translated():
            answer = await self._send(self._http.build_request("GET", "/", headers={"Accept": "text/html"}))
        return answer.text if answer.status_code == httpx.codes.OK else None

    async def forward(self, request: Request, url: httpx.URL, body: bytes | None = None) -> Response:
        """The answer to a request at `url`, as it comes in; `body` replaces the request's own."""
        headers = [(name, value) for name, value in request.headers.items() if name in _REQUEST_HEADERS]
        if "transfer-encoding" in request.headers:  # by which a body is read that has a length too
            headers = [(name, value) for name, value in headers if name != "content-length"]
        content: bytes | AsyncIterator[bytes] | None = body
        if body is not None:
            headers = [(name, value) for name, value in headers if name != "content-length"]
        elif request.method in {"POST", "PUT", "PATCH", "DELETE"}:
            content = request.stream()
        else:  # MLflow reads parameters from the body of a GET that has no query
            headers = [(name, value) for name, value in headers if name not in {"content-length", "content-type"}]
        sent = self._http.build_request(request.method, url, headers=headers, content=content)
        async with _translated():
            answer = await self._send(sent, stream=True)
        kept = {name: value for name, value in answer.headers.items() if name in _ANSWER_HEADERS}
        return _Passed(answer, kept)

    async def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        """The answer. Where `serve` has not started MLflow yet, it is asked to, and a request that reads waits for it.

        A request that writes does not wait: its client may have given up and sent it again meanwhile.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return await self._http.send(request, stream=stream)
            except httpx.ConnectError as error:
                if not self._bell.ring():
                    raise
                if request.method not in {"GET", "HEAD"} or time.monotonic() > deadline:
                    raise UnavailableError("MLflow is starting; ask again in a few seconds") from error
            await anyio.sleep(0.2)


class _Passed(StreamingResponse):
    """An answer that is passed on while it comes in, and given up when the client goes."""

    def __init__(self, answer: httpx.Response, headers: Mapping[str, str]) -> None:
        super().__init__(answer.aiter_raw(), answer.status_code, headers)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.aclose()


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except httpx.PoolTimeout as error:
        raise UnavailableError("MLflow has too much to do at the moment; ask again") from error
    except httpx.TransportError as error:
        raise UnavailableError(
            "MLflow does not answer at the moment; sweeps go on without it, and it gets all their runs when it is back"
        ) from error
