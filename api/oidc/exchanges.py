"""One exchange with a provider: bounded in time and size, to addresses that keep what is sent among those meant."""

import json
import logging
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from orchestrator.host.oidc_settings import is_private
from orchestrator.host.proxies import proxy_fault, proxy_variable
from orchestrator.views.errors import UnavailableError

log = logging.getLogger(__name__)

SECONDS: Final = 10.0
"""For each of the steps; who joins several bounds all of them."""
MOST_BYTES: Final = 256 * 1024
"""Of an answer: keys, tokens and claims are a few thousand."""


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """What came back."""

    status: int
    said: Mapping[str, Any]


async def exchange(
    url: str, *, body: str | None = None, headers: Mapping[str, str] | None = None, what: str = "the provider"
) -> ProviderReply:
    """Ask an address, by POST where there is a body, and read a JSON object; UnavailableError where none comes.

    Nothing of what was sent or received is part of the error. Redirects are not followed.
    """
    host = urlsplit(url).hostname or ""
    if not is_private(url):
        raise UnavailableError(f"{what} is at {host or 'no host'} without https")
    given = {
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": "metricsweep",
        **(headers or {}),
    }
    variable = proxy_variable(url)
    if variable and (fault := proxy_fault()):
        raise UnavailableError(f"{what} at {host} cannot be reached: {fault}")
    if body is not None:
        given["content-type"] = "application/x-www-form-urlencoded"
    try:
        async with (
            httpx.AsyncClient(timeout=SECONDS, trust_env=False, proxy=_proxy(variable), verify=_trusted()) as client,
            client.stream("POST" if body is not None else "GET", url, content=body, headers=given) as response,
        ):
            text = await _bounded(response, what)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        through = f" through the proxy that {variable} names" if variable else ""
        raise UnavailableError(f"{what} at {host} cannot be reached{through}: {type(error).__name__}") from None
    return ProviderReply(response.status_code, _object(text, what, response.status_code))


@cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates are believed: read once, since that takes the event loop tens of milliseconds."""
    return httpx.create_ssl_context()


async def _bounded(response: httpx.Response, what: str) -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":  # it may stand for any number of bytes
        raise UnavailableError(f"{what} compresses its answer, unasked")
    read = bytearray()
    async for piece in response.aiter_raw():
        read += piece
        if len(read) > MOST_BYTES:
            raise UnavailableError(f"{what} answers with more than {MOST_BYTES} bytes")
    return bytes(read)


def _object(text: bytes, what: str, status: int) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise UnavailableError(f"{what} answers {status}, with no JSON object")
    return said


def _proxy(variable: str | None) -> str | None:
    """The proxy that the environment names for addresses beyond this machine."""
    if variable is None:
        return None
    address = os.environ[variable]
    return address if "://" in address else f"http://{address}"
