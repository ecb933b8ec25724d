"""What a proxy says of its client by X-Forwarded-For and -Proto: it counts from those that the settings name."""

import ipaddress
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

PEER: Final = "metricsweep.peer"
"""Where a scope has the address that the connection came from, whatever a header says."""
MOST_HOPS: Final = 16


class Forwarding:
    """Outermost ASGI middleware: puts the client of a trusted proxy in the place of the proxy."""

    def __init__(self, app: ASGIApp, proxies: Collection[IPv4Network | IPv6Network]) -> None:
        self.app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as its client's."""
        if scope["type"] == "http":
            scope[PEER] = peer = scope["client"][0] if scope.get("client") else ""
            if self._trusts(peer):
                self._believe(scope, peer)
        await self.app(scope, receive, send)

    def _believe(self, scope: Scope, peer: str) -> None:
        said = {b"x-forwarded-for": "", b"x-forwarded-proto": ""}
        for name, value in scope["headers"]:
            if name in said:
                said[name] = f"{said[name]},{value.decode('latin-1')}"
        # Each proxy adds whom it heard behind what it was told: what the first that is not trusted said is hearsay.
        hops = [one.strip() for one in said[b"x-forwarded-for"].split(",") if one.strip()]
        client = peer
        for hop in reversed(hops[-MOST_HOPS:]):
            if (address := _address(hop)) is None:
                break
            client = address
            if not self._trusts(address):
                break
        if client != peer:
            scope["client"] = (client, 0)
        scheme = said[b"x-forwarded-proto"].rpartition(",")[2].strip().lower()  # that of the proxy before us
        if scheme in ("http", "https"):
            scope["scheme"] = scheme

    def _trusts(self, host: str) -> bool:
        with suppress(ValueError):
            address = ipaddress.ip_address(host)
            return any(address in network for network in self._proxies)
        return False


def _address(hop: str) -> str | None:
    """The address of a hop, with which some proxies say a port; none: it is no address."""
    bare = hop.removeprefix("[").partition("]")[0] if hop.startswith("[") else hop
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    with suppress(ValueError):
        return str(ipaddress.ip_address(bare))
    return None
