"""A login by a provider, from the link of the login page to who it is."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from authlib.common.urls import add_params_to_uri
from authlib.oauth2.client import OAuth2Client
from authlib.oauth2.rfc6749.parameters import prepare_token_request

from api.oidc.attempts import LoginAttempt, LoginAttempts
from api.oidc.exchanges import ProviderReply, exchange
from api.oidc.id_tokens import Expected, UnknownKeyError, claims_of
from api.oidc.provider import Endpoints, Provider
from api.oidc.rules import LoginRules
from orchestrator.secrets import Secrets
from orchestrator.settings import Settings
from orchestrator.views.errors import BusyError, LoginRefusedError, UnavailableError
from orchestrator.views.logins import Person

SECONDS: Final = 15.0
"""For all that one request asks the provider."""
MOST_ASKING: Final = 32
"""Requests that wait for the provider at once."""
MOST_CODE: Final = 4_096


class ProviderLogin:
    """What the routes ask. UnavailableError where the provider does not answer: that stops nobody but who logs in."""

    def __init__(self, settings: Settings, secret: Callable[[], str]) -> None:
        """`secret`: by which cookies are sealed. MetricsweepError where the file of the client's secret holds none."""
        self.provider, self.rules = Provider(settings.oidc_issuer), LoginRules.of(settings)
        self.attempts = LoginAttempts(secret)
        self.name = settings.oidc_name or urlsplit(settings.oidc_issuer).hostname or ""
        self._client, self._scopes = settings.oidc_client_id, settings.oidc_scopes
        self._secrets, self._asking = Secrets(settings), 0
        _ = self._secrets.oidc_client_secret  # a file that holds none is an error of the start, not of a login

    @classmethod
    def of(cls, settings: Settings, secret: Callable[[], str]) -> "ProviderLogin | None":
        """That of the settings; none where they name no provider."""
        return cls(settings, secret) if settings.oidc_issuer else None

    async def address(self, attempt: LoginAttempt, back: str) -> str:
        """Where the browser logs in, from where it is sent `back`."""
        async with self._bounded():
            endpoints = await self.provider.endpoints()
        client = OAuth2Client(None, self._client, scope=self._scopes, redirect_uri=back, code_challenge_method="S256")
        url, _ = client.create_authorization_url(
            endpoints.authorization, attempt.state, attempt.verifier, nonce=attempt.nonce
        )
        return str(url)

    async def person(self, attempt: LoginAttempt, answer: Mapping[str, str], back: str) -> Person:
        """Who logged in, by what the provider sent the browser back with; LoginRefusedError."""
        async with self._bounded():
            endpoints = await self.provider.endpoints()
            code = self._code(answer, endpoints)
            reply = await self._token(endpoints, code, attempt.verifier, back)
            text, access = reply.said.get("id_token"), reply.said.get("access_token")
            if not isinstance(text, str):
                raise LoginRefusedError("the provider gave no ID token")
            token = access if isinstance(access, str) else None
            claims = await self._claims(text, Expected(self.provider.issuer, self._client, attempt.nonce, token))
            if token and endpoints.userinfo and not self.rules.needed <= set(claims):
                told = await self._userinfo(endpoints.userinfo, token, claims)
                # Whether an address is verified is said of the address that stands beside it.
                kept = {name: one for name, one in claims.items() if name != "email_verified" or "email" not in told}
                claims = {**kept, **told}
        return self.rules.person(self.provider.issuer, claims)

    async def logout(self, back: str) -> str | None:
        """Where the provider logs the browser out, which then comes `back`; none: it offers nothing of that kind."""
        async with self._bounded():
            endpoints = await self.provider.endpoints()
        asked = [("client_id", self._client), ("post_logout_redirect_uri", back)]
        return str(add_params_to_uri(endpoints.logout, asked)) if endpoints.logout else None

    def _code(self, answer: Mapping[str, str], endpoints: Endpoints) -> str:
        told = answer.get("iss")
        if (told is not None or endpoints.names_itself) and told != self.provider.issuer:
            raise LoginRefusedError("another provider than ours sent the browser back")
        if "error" in answer:
            raise LoginRefusedError(f"the provider let nobody in: {_word(answer['error'])}")
        code = answer.get("code", "")
        if not 0 < len(code) <= MOST_CODE:
            raise LoginRefusedError("the provider sent the browser back without a code")
        return code

    async def _token(self, endpoints: Endpoints, code: str, verifier: str, back: str) -> ProviderReply:
        secret = self._secrets.oidc_client_secret
        shown = "none" if secret is None else f"client_secret_{'post' if endpoints.shows_secret_in_body else 'basic'}"
        client = OAuth2Client(None, self._client, secret, shown)
        asked = prepare_token_request("authorization_code", "", back, code=code, code_verifier=verifier)
        _, headers, body = client.client_auth(shown).prepare("POST", endpoints.token, {}, asked)
        reply = await exchange(endpoints.token, body=body, headers=headers, what="the provider's token endpoint")
        error = _word(reply.said.get("error"))
        if error == "invalid_grant":
            raise LoginRefusedError("the provider does not know the code: it was used, has run out, or is none of its")
        if reply.status != 200:
            raise UnavailableError(f"the provider refuses this server, its client id or secret: {reply.status} {error}")
        return reply

    async def _claims(self, text: str, expected: Expected) -> Mapping[str, Any]:
        for renewed in (False, True):
            try:
                return claims_of(text, await self.provider.keys(renewed=renewed), expected)
            except UnknownKeyError:
                continue
        raise LoginRefusedError("the provider's ID token is signed by none of its keys")

    async def _userinfo(self, url: str, token: str, claims: Mapping[str, Any]) -> Mapping[str, Any]:
        what = "the provider's userinfo endpoint"
        reply = await exchange(url, headers={"authorization": f"Bearer {token}"}, what=what)
        if reply.status != 200:
            raise UnavailableError(f"{what} answers {reply.status}")
        if reply.said.get("sub") != claims["sub"]:  # OpenID Connect Core 1.0, section 5.3.2
            raise LoginRefusedError("the provider tells the claims of somebody else")
        return reply.said

    @asynccontextmanager
    async def _bounded(self) -> AsyncIterator[None]:
        if self._asking >= MOST_ASKING:
            raise BusyError(f"{MOST_ASKING} logins wait for the provider; come back in a moment")
        self._asking += 1
        try:
            async with asyncio.timeout(SECONDS):
                yield
        except TimeoutError:
            raise UnavailableError(f"the provider does not answer within {SECONDS:.0f} s") from None
        finally:
            self._asking -= 1


def _word(error: object) -> str:
    """A provider's code of an error, which a stranger may have written."""
    return error if isinstance(error, str) and re.fullmatch(r"[a-z_]{1,64}", error) else "an error of no known form"
