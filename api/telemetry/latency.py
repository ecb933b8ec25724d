"""How long requests take until their answer begins, by the template of their route."""

import time
from typing import Final

from prometheus_client import CollectorRegistry, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNROUTED: Final = "none"
"""The route of what was refused before it had one, or has none: a path that somebody made up is no label."""


def histogram(registry: CollectorRegistry) -> Histogram:
    """The histogram of one process."""
    return Histogram(
        "metricsweep_request_duration_seconds",
        "Time until the answer to a request began, by the template of its route.",
        ("route", "method", "status"),
        buckets=BUCKETS,
        registry=registry,
    )


class Latency:
    """Outermost ASGI middleware; a stream that lasts for hours counts until its first byte."""

    def __init__(self, app: ASGIApp, seconds: Histogram) -> None:
        self.app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and note when its answer began."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start" and not status:
                status = message["status"]
                method = scope["method"] if scope["method"] in METHODS else "other"
                route = getattr(scope.get("route"), "path", None) or UNROUTED
                self._seconds.labels(route, method, str(status)).observe(time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, noted)
