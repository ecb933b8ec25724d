"""The provider: where its endpoints are, and by which keys it signs, as it says itself."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet, import_key

from api.oidc.exchanges import exchange
from orchestrator.host.oidc_settings import is_private
from orchestrator.views.errors import UnavailableError

DISCOVERY: Final = "/.well-known/openid-configuration"
KNOWN_SECONDS: Final = 3600.0
"""After which both are asked for anew."""
RENEWED_SECONDS: Final = 30.0
"""A signature by a key that is not known has the keys asked for anew, so often at most."""
AWAY_SECONDS: Final = 5.0
"""So long nobody asks again after the provider did not answer."""
MOST_KEYS: Final = 100
_MOST_DIGITS: Final = 1_400
"""Of a key's number in base64: of RSA 8,192 bits, beyond which a signature takes long to check."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of a provider, as its discovery document names them."""

    authorization: str
    token: str
    keys: str
    userinfo: str | None
    logout: str | None
    shows_secret_in_body: bool
    """Whether it takes the client's secret in the body alone."""
    names_itself: bool
    """Whether it says in the address to which it sends a browser back who it is (RFC 9207)."""


class Provider:
    """What is known of one provider; safe within one event loop. UnavailableError where it says nothing of use."""

    def __init__(self, issuer: str, now: Callable[[], float] = time.monotonic) -> None:
        self.issuer, self._now = issuer, now
        self._asking = asyncio.Lock()
        self._endpoints: tuple[float, Endpoints] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._away: tuple[float, str] | None = None

    @property
    def logs_out(self) -> bool:
        """Whether it is known to log people out."""
        return self._endpoints is not None and self._endpoints[1].logout is not None

    async def endpoints(self) -> Endpoints:
        """As it says."""
        async with self._asking:
            if self._endpoints is None or self._now() - self._endpoints[0] > KNOWN_SECONDS:
                said = await self._ask(f"{self.issuer.rstrip('/')}{DISCOVERY}", "the provider")
                self._endpoints = self._now(), _endpoints(said, self.issuer)
            return self._endpoints[1]

    async def keys(self, *, renewed: bool = False) -> KeySet:
        """By which it signs; `renewed`: one of them is not known, and may be new."""
        url = (await self.endpoints()).keys
        async with self._asking:
            oldest = RENEWED_SECONDS if renewed else KNOWN_SECONDS
            if self._keys is None or self._now() - self._keys[0] > oldest:
                self._keys = self._now(), _keys(await self._ask(url, "the provider's list of keys"))
            return self._keys[1]

    async def _ask(self, url: str, what: str) -> Mapping[str, Any]:
        if self._away is not None and self._now() - self._away[0] < AWAY_SECONDS:
            raise UnavailableError(self._away[1])
        try:
            reply = await exchange(url, what=what)
            if reply.status != 200:
                raise UnavailableError(f"{what} answers {reply.status}")
        except UnavailableError as error:
            self._away = self._now(), str(error)
            raise
        except asyncio.CancelledError:  # it has taken all the time that there was
            self._away = self._now(), f"{what} does not answer in time"
            raise
        return reply.said


def _endpoints(said: Mapping[str, Any], issuer: str) -> Endpoints:
    if said.get("issuer") != issuer:
        named = str(said.get("issuer"))[:255]
        raise UnavailableError(f"what answers for {issuer} calls itself {named!r}; METRICSWEEP_OIDC_ISSUER is compared")
    addresses = {name: _address(said, f"{name}_endpoint") for name in ("authorization", "token", "userinfo")}
    keys, methods = _address(said, "jwks_uri"), said.get("token_endpoint_auth_methods_supported")
    if not (addresses["authorization"] and addresses["token"] and keys):
        raise UnavailableError(f"{issuer} names no https addresses of authorization, tokens and keys")
    return Endpoints(
        addresses["authorization"], addresses["token"], keys, addresses["userinfo"],
        _address(said, "end_session_endpoint"),
        isinstance(methods, list) and "client_secret_post" in methods and "client_secret_basic" not in methods,
        said.get("authorization_response_iss_parameter_supported") is True,
    )  # fmt: skip


def _address(said: Mapping[str, Any], name: str) -> str | None:
    url = said.get(name)
    return url if isinstance(url, str) and len(url) <= 2_000 and is_private(url) else None


def _keys(said: Mapping[str, Any]) -> KeySet:
    listed = said.get("keys")
    found: list[Key] = []
    for one in listed[:MOST_KEYS] if isinstance(listed, list) else []:
        # What it encrypts by, and what we cannot read, is not for signatures; a shared secret would be no proof.
        if isinstance(one, dict) and one.get("kty") in ("RSA", "EC") and one.get("use", "sig") == "sig" and _small(one):
            with suppress(JoseError, ValueError, TypeError, KeyError):
                found.append(import_key(one))
    if not found:
        raise UnavailableError("the provider's list of keys has none that signs")
    return KeySet(found)


def _small(key: Mapping[str, Any]) -> bool:
    return len(str(key.get("n", ""))) <= _MOST_DIGITS and len(str(key.get("e", ""))) <= 8
