"""Limits of rate: how many requests a token, or an address without one, may send a second, and how many at once."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import answer, details
from api.protection.guards import SAFE_METHODS
from orchestrator.host.identity import IDENTITY_PATH
from orchestrator.settings import Settings
from orchestrator.views.callers import Caller, caller

BURST_SECONDS: Final = 10.0
"""Whoever was silent for so long may send as much at once as this time allows."""
MOST_KEPT: Final = 20_000
"""Buckets that are kept; beyond them those are forgotten that were used longest ago."""
UNCOUNTED: Final = frozenset({"/healthz", "/readyz", IDENTITY_PATH})
"""What watchdogs and our own commands ask before anything else; each costs no more than to be refused."""


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
