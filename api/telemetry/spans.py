"""A span for each request, where traces are told: its route, its status, and what it was about."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.telemetry.latency import METHODS
from orchestrator.host.traces import request_span, traced

UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""What supervisors and Prometheus ask for every few seconds."""
NOUNS: Final = {"/sweeps/{id}": "sweep", "/trials/{id}": "trial"}
"""What the number in an address names."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")  # what a span has room for; of a longer one there is no sweep


class Spans:
    """ASGI middleware; a stream of events, which lasts for hours, is left out, as `is_stream` knows it."""

    def __init__(self, app: ASGIApp, is_stream: Callable[[str, str], bool]) -> None:
        self.app = app
        self._is_stream = is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and trace it until its last byte."""
        asked = scope["type"] == "http" and scope["path"] not in UNTRACED
        if not traced() or not asked or self._is_stream(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "other"
        headers = Headers(scope=scope)
        with request_span(method, headers) as noted:

            async def told(message: Message) -> None:
                if message["type"] == "http.response.start":
                    noted.note_all(_answered(scope, message, method))
                    if route := getattr(scope.get("route"), "path", None):
                        noted.rename(f"{method} {route}")
                    if message["status"] >= 500:
                        noted.fail(f"answered {message['status']}")
                await send(message)

            await self.app(scope, receive, told)


def _answered(scope: Scope, message: Message, method: str) -> Mapping[str, Any]:
    """What is known once the answer begins, by the names that OpenTelemetry has for it and by ours."""
    sent, route = Headers(raw=message["headers"]), getattr(scope.get("route"), "path", None)
    number = str(scope.get("path_params", {}).get("id", ""))
    named = [noun for start, noun in NOUNS.items() if start in (route or "") and _NUMBER.fullmatch(number)]
    return {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": message["status"],
        "url.path": scope["path"],
        "metricsweep.request": sent.get("x-request-id"),
        "metricsweep.location": sent["location"].partition("?")[0] if "location" in sent else None,
        **{f"metricsweep.{noun}": int(number) for noun in named},
    }
